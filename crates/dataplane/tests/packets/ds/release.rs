//! RELEASE: an idle connection goes to the next data server with an empty ACK that the connection server has
//! made, and ends here without a word to the client; one that is not idle stays.

use std::io::{ErrorKind, Read as _, Write as _};

use baton_abi::DataServer;
use baton_wire::{Keep, Message};

use super::loopback::{ANSWER, COOKIE, Live, expect, expect_bytes, send, send_adopt};
use crate::{
    cluster::{CS, ds, ds_mac},
    host::{accept, nothing_to_accept, on_own_host},
    lccp::{Sent, adopt, flow, linux_tcb, release},
    node::Counted,
    options,
    segment::{Client, GET, Segment},
};

const RELEASED: Counted<'_> = &[("ds_released", 1)];
const REFUSED: Counted<'_> = &[("ds_release_refused", 1)];

/// What the connection server's daemon makes: it knows where the connection is, and nothing else.
fn made(live: &Live) -> Segment {
    live.ack().options([1; 12])
}

/// The next message from here is KEEP to the connection server, and says this.
#[track_caller]
fn kept(live: &Live, ack: &Segment) {
    let message = message(live);
    let (flow, tcb, keep) = (flow(&live.client), linux_tcb(), Keep::Busy);
    assert_eq!(message.message, Message::Keep { flow, tcb, keep });
    assert_eq!((message.from, message.to), (ds(0), CS));
    assert_eq!(message.packet, ack.packet());
}

/// The next one that is no segment of this host's kernel.
#[track_caller]
fn message(live: &Live) -> Sent {
    loop {
        let packet = live.wire.next();
        if packet.ip.protocol != etherparse::IpNumber::TCP {
            return crate::lccp::opened(&live.node, &packet);
        }
    }
}

#[track_caller]
fn ended(live: &Live) {
    let error = (&live.stream).read(&mut [0; 16]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

/// The ACK that goes on has the client's own timestamps, as of its last packet, and its window.
#[test]
fn an_idle_connection_goes_to_the_next() {
    on_own_host(|| {
        let live = Live::answered();
        send(&live.node, &release(&live.client, 1), &made(&live));
        expect(&live.node, RELEASED);
        let message = live.message_to(ds(1), ds_mac(1));
        assert_eq!(message.message, adopt(&live.client));
        // What the client has last sent: its value, the echo of ours, and an unscaled window of 64240.
        assert_eq!(message.packet, live.ack().packet());
        ended(&live);
        live.nothing_sent();
        assert!(nothing_to_accept(&live.listener));
    });
}

/// A client without timestamps gets none in its name.
#[test]
fn without_timestamps() {
    on_own_host(|| {
        let node = super::loopback::attached();
        let mut live = Live::answered_at(node);
        // Another client at the same server, which never sent any.
        let plain = Client::fresh();
        send_adopt(&live.node, &plain.get(COOKIE).options([]));
        let (stream, _) = accept(&live.listener);
        expect_bytes(&stream, GET);
        expect(&live.node, &[("ds_adopted", 1)]);
        (&stream).write_all(ANSWER).unwrap();
        live.response();
        live.client = plain;
        // Until the end, or its FIN would be on the wire.
        let _first = std::mem::replace(&mut live.stream, stream);
        super::loopback::forward(&live.node, &live.ack().options([]));
        expect(&live.node, &[("ds_forwarded", 1)]);

        send(&live.node, &release(&live.client, 1), &made(&live));
        expect(&live.node, RELEASED);
        let message = live.message_to(ds(1), ds_mac(1));
        assert_eq!(message.packet, made(&live).packet());
        ended(&live);
    });
}

/// And that data server makes a socket of it, on which the client goes on.
#[test]
fn it_is_adopted_and_goes_on() {
    on_own_host(|| {
        let live = Live::answered();
        send(&live.node, &release(&live.client, 1), &made(&live));
        expect(&live.node, RELEASED);
        let message = live.message_to(ds(1), ds_mac(1));
        assert_eq!(message.packet, live.ack().packet());
        ended(&live);

        // As if this were the next one.
        send_adopt(&live.node, &live.ack());
        let (stream, from) = accept(&live.listener);
        assert_eq!(from, std::net::SocketAddr::V4(live.client.address));
        expect(&live.node, &[("ds_adopted", 1)]);
        // A request that comes by the last owner is an ADOPT of a connection that is here.
        send_adopt(&live.node, &live.request());
        expect(&live.node, &[("ds_duplicate", 1)]);
        expect_bytes(&stream, GET);
        (&stream).write_all(ANSWER).unwrap();
        let response = live.response();
        assert_eq!(response.payload(), ANSWER);
        let tcp = response.segment();
        assert_eq!(tcp.sequence_number(), live.request().ack);
        assert_eq!(
            tcp.acknowledgment_number(),
            live.request().seq + GET.len() as u32
        );
    });
}

#[test]
fn the_server_writes_just_now() {
    on_own_host(|| {
        let mut live = Live::answered();
        let ack = made(&live);
        live.write();
        send(&live.node, &release(&live.client, 1), &ack);
        expect(&live.node, REFUSED);
        kept(&live, &ack);
        still_here(&live);
    });
}

#[test]
fn the_server_has_not_read_the_request() {
    on_own_host(|| {
        let live = Live::adopted();
        let ack = live.client.later(COOKIE, GET.len(), 0).options([1; 12]);
        send(&live.node, &release(&live.client, 1), &ack);
        expect(&live.node, REFUSED);
        kept(&live, &ack);
        expect_bytes(&live.stream, GET);
    });
}

/// A request has come since, or the ACK is of another time.
#[test]
fn it_is_elsewhere_in_its_numbers() {
    for (seq, ack) in [(1, 0), (u32::MAX, 0), (0, 1), (0, u32::MAX)] {
        on_own_host(|| {
            let live = Live::answered();
            let mut other = made(&live);
            other.seq = other.seq.wrapping_add(seq);
            other.ack = other.ack.wrapping_add(ack);
            send(&live.node, &release(&live.client, 1), &other);
            expect(&live.node, REFUSED);
            kept(&live, &other);
            still_here(&live);
        });
    }
}

/// Without a way to the next it stays; also one that is not here is nobody's to give.
#[test]
fn nobody_to_give_it_to_and_nothing_to_give() {
    on_own_host(|| {
        let live = Live::answered();
        let ack = made(&live);
        let none = DataServer::default();
        live.node.plane().set_peer(ds(1), &none).unwrap();
        send(&live.node, &release(&live.client, 1), &ack);
        expect(&live.node, REFUSED);
        kept(&live, &ack);
        still_here(&live);

        let stranger = Client::fresh();
        let ack = stranger.later(COOKIE, 1, 1).options([1; 12]);
        send(&live.node, &release(&stranger, 1), &ack);
        expect(&live.node, &[("ds_release_gone", 1)]);
        live.nothing_sent();
    });
}

/// Only an empty ACK with room for timestamps is one.
#[test]
fn what_is_no_made_ack_is_dropped() {
    on_own_host(|| {
        let live = Live::answered();
        for other in [
            made(&live).payload("x"),
            made(&live).flags("RA"),
            made(&live).flags("FA"),
            made(&live).flags("SA"),
            made(&live).flags("P"),
            made(&live).options([]),
            made(&live).options(options::join([&[1; 12][..], &[1; 4]])),
        ] {
            send(&live.node, &release(&live.client, 1), &other);
            expect(&live.node, &[("lccp_mismatch", 1)]);
        }
        live.nothing_sent();
        still_here(&live);
    });
}

/// The server's side is as it was.
#[track_caller]
fn still_here(live: &Live) {
    live.stream.set_nonblocking(true).unwrap();
    let error = (&live.stream).read(&mut [0; 16]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}
