//! HANDOVER of a connection that is not at a quiet point: delivered here, and KEEP says why.

use std::{
    io::{Read as _, Write as _},
    net::Shutdown,
};

use baton_abi::DataServer;
use baton_wire::{Keep, Message};

use super::loopback::{ANSWER, COOKIE, FORWARDED, Live, expect, expect_bytes, forward, send};
use crate::{
    cluster::{CS, CS_MAC, ds},
    host::on_own_host,
    lccp::{flow, handover, linux_tcb},
    segment::{GET, Segment},
};

/// The request is refused for this reason; nobody else hears of it.
#[track_caller]
fn kept(live: &Live, request: &Segment, why: Keep) {
    send(&live.node, &handover(&live.client, 1), request);
    let counter = match why {
        Keep::State => "ds_kept_state",
        Keep::Unsent => "ds_kept_unsent",
        Keep::Unread => "ds_kept_unread",
        Keep::Sequence => "ds_kept_sequence",
        Keep::Unfinished => "ds_kept_unfinished",
        _ => "ds_kept_no_way",
    };
    expect(&live.node, &[(counter, 1)]);
    // The kernel may have acknowledged what it was given.
    let message = loop {
        let packet = live.wire.next();
        if packet.ip.protocol != etherparse::IpNumber::TCP {
            assert_eq!(packet.ethernet.destination, CS_MAC);
            break crate::lccp::opened(&live.node, &packet);
        }
    };
    assert_eq!((message.from, message.to), (ds(0), CS));
    let expected = Message::Keep {
        flow: flow(&live.client),
        tcb: linux_tcb(),
        keep: why,
    };
    assert_eq!(message.message, expected);
    assert_eq!(message.packet, request.packet());
}

#[test]
fn the_server_has_not_read_the_request_before() {
    on_own_host(|| {
        let live = Live::adopted();
        let next = live.client.later(COOKIE, GET.len(), 0);
        let next = next.flags("PA").payload("GET /second");
        kept(&live, &next, Keep::Unread);
        expect_bytes(&live.stream, GET);
        expect_bytes(&live.stream, b"GET /second");
        stays(&live, GET.len() + next.payload.len());
    });
}

/// All of it, or the last byte.
#[test]
fn the_client_has_not_acknowledged_the_response() {
    for missing in [1, 10, ANSWER.len() as u32] {
        on_own_host(|| {
            let mut live = Live::adopted();
            expect_bytes(&live.stream, GET);
            live.write();
            let mut next = live.request();
            next.ack -= missing;
            kept(&live, &next, Keep::Unsent);
            expect_bytes(&live.stream, GET);
            stays(&live, 2 * GET.len());
        });
    }
}

/// It acknowledges all, but by then the server has written more.
#[test]
fn the_server_goes_on_writing() {
    on_own_host(|| {
        let mut live = Live::answered();
        live.write();
        kept(&live, &live.request(), Keep::Unsent);
        expect_bytes(&live.stream, GET);
    });
}

/// The same request once more, one that begins within it, and one behind a gap: the kernel's to sort out.
#[test]
fn it_is_not_the_next_byte() {
    let whole = GET.len() as u32;
    for by in [0, 1, whole - 1, whole + 1, 10_000] {
        on_own_host(|| {
            let live = Live::answered();
            forward(&live.node, &live.request());
            expect(&live.node, FORWARDED);
            expect_bytes(&live.stream, GET);
            let request = live.request();
            let seq = request.seq.wrapping_add(by);
            kept(&live, &request.seq(seq), Keep::Sequence);
            if by == 0 {
                stays(&live, 2 * GET.len());
            }
        });
    }
}

#[test]
fn it_is_being_closed() {
    let ways: [(&str, fn(&Live)); 3] = [
        ("by the client", |live| {
            forward(&live.node, &live.ack().flags("FA"));
            expect(&live.node, FORWARDED);
            assert_eq!((&live.stream).read(&mut [0; 16]).unwrap(), 0);
        }),
        ("by the server", |live| {
            live.stream.shutdown(Shutdown::Write).unwrap();
        }),
        ("by both, and waits", |live| {
            live.stream.shutdown(Shutdown::Write).unwrap();
            let mut fin = live.ack().flags("FA");
            fin.ack += 1;
            forward(&live.node, &fin);
            expect(&live.node, FORWARDED);
        }),
    ];
    for (name, close) in ways {
        on_own_host(|| {
            eprintln!("closed {name}");
            let live = Live::answered();
            close(&live);
            kept(&live, &live.request(), Keep::State);
        });
    }
}

/// Neither to the next data server nor to who asked: see [`super::handover`] for one of them.
#[test]
fn there_is_no_way_at_all() {
    on_own_host(|| {
        let live = Live::answered();
        for address in [ds(1), CS] {
            let none = DataServer::default();
            live.node.plane().set_peer(address, &none).unwrap();
        }
        send(&live.node, &handover(&live.client, 1), &live.request());
        expect(&live.node, &[("ds_kept_no_way", 1)]);
        expect_bytes(&live.stream, GET);
    });
}

/// Then nobody hears of it. The request is delivered all the same.
#[test]
fn there_is_no_way_to_who_asked() {
    on_own_host(|| {
        let live = Live::answered();
        live.node
            .plane()
            .set_peer(CS, &DataServer::default())
            .unwrap();
        let mut request = live.request();
        request.ack -= 1;
        send(&live.node, &handover(&live.client, 1), &request);
        expect(&live.node, &[("ds_kept_unsent", 1)]);
        expect_bytes(&live.stream, GET);
    });
}

/// What is wrong first is told: without the right place nothing else can be judged.
#[test]
fn one_reason_of_several() {
    on_own_host(|| {
        let mut live = Live::adopted();
        live.write();
        let next = live.client.later(COOKIE, GET.len(), 0);
        let next = next.flags("PA").payload("x");
        let seq = next.seq + 5;
        kept(&live, &next.clone().seq(seq), Keep::Sequence);
        kept(&live, &next, Keep::Unread);
    });
}

/// The connection is as it was: the server can write, and the client's next bytes find it.
#[track_caller]
fn stays(live: &Live, sent: usize) {
    let more = live.client.later(COOKIE, sent, 0);
    forward(&live.node, &more.flags("PA").payload("more"));
    expect(&live.node, FORWARDED);
    let mut bytes = [0; 4];
    (&live.stream).read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"more");
    (&live.stream).write_all(b"an answer").unwrap();
    assert!(live.stream.take_error().unwrap().is_none());
}
