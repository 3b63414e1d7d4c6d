//! HANDOVER at a quiet point: the connection goes to the next data server and ends here, without a word
//! to the client. And once it is gone, everything about it goes on to the next.

use std::io::{ErrorKind, Read as _, Write as _};

use baton_abi::DataServer;
use baton_wire::{Message, Refusal};

use super::loopback::{
    ANSWER, COOKIE, FORWARDED, Live, expect, expect_bytes, forward, send, send_adopt,
};
use crate::{
    cluster::{CS, CS_MAC, WEB, ds, ds_mac, peer},
    host::{accept, listen, nothing_to_accept, on_own_host},
    lccp::{adopt, flow, forward_to, handover, linux_tcb, sent, short, to_ds},
    node::{Counted, Drop, Node, Redirect},
    segment::{Client, GET, Segment},
};

const HANDED_OVER: Counted<'_> = &[("ds_handed_over", 1)];
const PASSED_ON: Counted<'_> = &[("ds_passed_on", 1)];

#[test]
fn a_quiet_connection_goes_to_the_next() {
    on_own_host(|| {
        let live = Live::answered();
        let request = live.request();
        send(&live.node, &handover(&live.client, 1), &request);
        expect(&live.node, HANDED_OVER);
        let message = live.message_to(ds(1), ds_mac(1));
        assert_eq!(message.message, adopt(&live.client));
        assert_eq!(message.packet, request.packet());
        ended(&live);
        live.nothing_sent();
        assert!(nothing_to_accept(&live.listener));
    });
}

/// A data server that nobody has told this one about, or one that is gone: whoever asked knows it.
#[test]
fn without_a_way_to_the_next_it_goes_back() {
    on_own_host(|| {
        let live = Live::answered();
        let none = DataServer::default();
        live.node.plane().set_peer(ds(1), &none).unwrap();
        let request = live.request();
        send(&live.node, &handover(&live.client, 1), &request);
        expect(&live.node, &[("ds_no_way", 1)]);
        let message = live.message_to(CS, CS_MAC);
        let (flow, tcb) = (flow(&live.client), linux_tcb());
        let refusal = Refusal::NoWay;
        assert_eq!(message.message, Message::Refused { flow, tcb, refusal });
        assert_eq!(message.packet, request.packet());
        ended(&live);
        live.nothing_sent();
    });
}

/// Whatever kind of client and request: the next data server gets it byte by byte.
#[test]
fn every_kind_of_request() {
    let kinds: [(&str, fn(Segment) -> Segment); 5] = [
        ("no options", |request| request.options([])),
        ("the most options", |request| {
            request.options(crate::options::join([
                &crate::options::linux_later(123_470, 9)[..],
                &[1; 28],
            ]))
        }),
        ("IP options", |request| request.ip_options([1; 40])),
        ("without PSH", |request| request.flags("A")),
        ("a long one", |request| request.payload([b'x'; 1300])),
    ];
    for (name, change) in kinds {
        on_own_host(|| {
            let live = Live::answered();
            let request = change(live.request());
            send(&live.node, &handover(&live.client, 1), &request);
            expect(&live.node, HANDED_OVER);
            let message = live.message_to(ds(1), ds_mac(1));
            assert_eq!(message.packet, request.packet(), "{name}");
            ended(&live);
            live.nothing_sent();
        });
    }
}

/// The TCB part goes on as it came.
#[test]
fn the_tcb_part_goes_on() {
    on_own_host(|| {
        let live = Live::answered();
        let mut tcb = linux_tcb();
        (tcb.scales, tcb.sack, tcb.resume) = (None, false, 77);
        let flow = flow(&live.client);
        let next = short(ds(1));
        let message = Message::Handover { flow, tcb, next };
        send(&live.node, &message, &live.request());
        expect(&live.node, HANDED_OVER);
        let asker = Some(short(CS));
        let expected = Message::Adopt { flow, tcb, asker };
        assert_eq!(live.message_to(ds(1), ds_mac(1)).message, expected);
    });
}

/// A connection that was handed over, and the request that it went with.
fn gone() -> (Live, Segment) {
    let live = Live::answered();
    let request = live.request();
    send(&live.node, &handover(&live.client, 1), &request);
    expect(&live.node, HANDED_OVER);
    live.message_to(ds(1), ds_mac(1));
    (live, request)
}

/// What comes late, or again, finds it gone and follows it.
#[test]
fn what_follows_a_connection_that_is_gone() {
    on_own_host(|| {
        let (live, request) = gone();

        send(&live.node, &handover(&live.client, 1), &request);
        expect(&live.node, PASSED_ON);
        let again = live.message_to(ds(1), ds_mac(1));
        assert_eq!(again.message, adopt(&live.client));
        assert_eq!(again.packet, request.packet());

        let ack = live.ack();
        send(&live.node, &forward_to(&live.client, 1), &ack);
        expect(&live.node, PASSED_ON);
        let follows = live.message_to(ds(1), ds_mac(1));
        let flow = flow(&live.client);
        let (next, attempt) = (None, 1);
        assert_eq!(
            follows.message,
            Message::Forward {
                flow,
                next,
                attempt,
                end: 0,
                is_behind: false
            }
        );
        assert_eq!(follows.packet, ack.packet());

        // Who does not say where it is hears that it is not here.
        forward(&live.node, &ack);
        expect(&live.node, &[("ds_none", 1)]);
        let none = live.message_to(CS, CS_MAC);
        let attempt = 0;
        assert_eq!(
            none.message,
            Message::None {
                flow,
                attempt,
                is_plain: false
            }
        );
        live.nothing_sent();
        assert!(nothing_to_accept(&live.listener));
    });
}

/// A request later it may be this one's turn again: a new socket, where the old one was.
#[test]
fn and_back_again() {
    on_own_host(|| {
        let live = Live::answered();
        send(&live.node, &handover(&live.client, 1), &live.request());
        expect(&live.node, HANDED_OVER);
        live.message_to(ds(1), ds_mac(1));
        ended(&live);

        let answers = 2 * ANSWER.len() as u32;
        let back = live.client.later(COOKIE, 2 * GET.len(), answers);
        let back = back.flags("PA").payload(GET);
        send_adopt(&live.node, &back);
        let (stream, _) = accept(&live.listener);
        expect_bytes(&stream, GET);
        expect(&live.node, &[("ds_adopted", 1)]);
        (&stream).write_all(ANSWER).unwrap();
        let response = live.response();
        assert_eq!(response.payload(), ANSWER);
        let tcp = response.segment();
        assert_eq!(tcp.sequence_number(), back.ack);
        assert_eq!(tcp.acknowledgment_number(), back.seq + GET.len() as u32);
    });
}

/// A FORWARD that says where it may be otherwise is delivered as long as the connection is here.
#[test]
fn what_is_queued_is_delivered_here_first() {
    on_own_host(|| {
        let live = Live::answered();
        send(&live.node, &forward_to(&live.client, 1), &live.request());
        expect(&live.node, FORWARDED);
        expect_bytes(&live.stream, GET);
    });
}

/// The connection server that asked is the one to hear of a refusal, whoever passes it on.
#[test]
fn without_a_connection_it_is_passed_on() {
    for listening in [false, true] {
        on_own_host(|| {
            let _listener = listening.then(|| listen(WEB));
            let node = Node::ds();
            let client = Client::fresh();
            let packet = client.get(7).packet();
            let frame = to_ds(&handover(&client, 1), node.now(), &packet);
            node.run(&frame).expect(Drop, &[("ds_no_way", 1)]);

            node.plane()
                .set_peer(ds(1), &DataServer::default())
                .unwrap();
            node.run(&frame).expect(Drop, &[("ds_no_way", 1)]);

            node.plane().set_peer(ds(1), &peer(ds_mac(1))).unwrap();
            let seen = node.run(&frame).expect(Redirect, PASSED_ON);
            let message = sent(&node, &seen);
            assert_eq!((message.from, message.to), (ds(0), ds(1)));
            assert_eq!(seen.packet().ethernet.destination, ds_mac(1));
            assert_eq!(seen.packet().ethernet.source, ds_mac(0));
            assert_eq!(message.message, adopt(&client));
            assert_eq!(message.packet, packet);
            assert_eq!(seen.frame.len(), frame.len());
        });
    }
}

/// For the server it is as if the client had gone.
#[track_caller]
fn ended(live: &Live) {
    let error = (&live.stream).read(&mut [0; 16]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

/// What was sent again because its answer was late, and has been on its way for longer than the connection
/// was here: nobody answers it a second time.
#[test]
fn an_earlier_request_does_not_bring_it_back() {
    on_own_host(|| {
        let (live, _) = gone();
        let first = live.client.ack(COOKIE).flags("PA").payload(GET);
        send_adopt(&live.node, &first);
        expect(&live.node, &[("ds_given", 1)]);
        assert!(nothing_to_accept(&live.listener));
        live.nothing_sent();
    });
}

/// The request that was given away may come back, as later ones may, and another connection is another.
#[test]
fn what_is_not_earlier_is_adopted() {
    for (seq, ack) in [(0, 0), (500, 9000), (0_u32.wrapping_sub(1 << 21), 77)] {
        on_own_host(|| {
            let live = Live::answered();
            let request = live.request();
            send(&live.node, &handover(&live.client, 1), &request);
            expect(&live.node, HANDED_OVER);
            let mut next = request;
            next.seq = next.seq.wrapping_add(seq);
            next.ack = next.ack.wrapping_add(ack);
            send_adopt(&live.node, &next);
            expect(&live.node, &[("ds_adopted", 1)]);
            let (stream, _) = accept(&live.listener);
            expect_bytes(&stream, GET);
        });
    }
}
