//! BEGINS and ELSEWHERE: no byte of a request that is for another pool reaches the server, and nothing is kept from
//! it that is its own.

use std::{io::Write as _, time::Duration};

use baton_abi::{
    BEGINS_AGAIN, BEGINS_COME, DataServer, LCCP_END_SHIFT, LCCP_END_TOLD, LCCP_END_UNKNOWN,
    SERVICE_HANDOVER, SERVICE_STRICT,
};
use baton_dataplane::{Tick, tick_ago};
use baton_wire::{Keep, Message, TcbPart};

use super::{
    loopback::{
        ANSWER, COOKIE, FORWARDED, Live, adopted, attached, expect, expect_bytes, forward,
        hands_over, send, send_adopt,
    },
    responses::{note, seen},
};
use crate::{
    cluster::{CS, CS_MAC, ds, ds_mac},
    host::{accept, on_own_host},
    lccp::{Sent, adopt, flow, linux_tcb, opened, release, short},
    node::Counted,
    segment::{Client, GET, Segment},
};

const POST: &[u8] = b"POST /a HTTP/1.1\r\nContent-Length: 100000\r\n\r\n";

fn strict() -> Live {
    let node = attached();
    hands_over(&node, SERVICE_STRICT & !SERVICE_HANDOVER);
    Live::adopted_at(node)
}

fn answered() -> Live {
    let node = attached();
    hands_over(&node, SERVICE_STRICT);
    Live::answered_at(node)
}

fn begins(live: &Live, packet: &Segment) {
    let flow = flow(&live.client);
    send(&live.node, &Message::Begins { flow, how: 0 }, packet);
}

/// The connection server has led so many requests here.
fn elsewhere(live: &Live, packet: &Segment, requests: u8) {
    let message = Message::Elsewhere {
        flow: flow(&live.client),
        tcb: counted(requests),
        next: short(ds(1)),
    };
    send(&live.node, &message, packet);
}

fn counted(requests: u8) -> TcbPart {
    let mut tcb = linux_tcb();
    tcb.attempt = requests;
    tcb
}

/// The next message to the connection server; the kernel may have acknowledged what it was given.
#[track_caller]
fn told(live: &Live) -> Sent {
    loop {
        let packet = live.wire.next();
        if packet.ip.protocol != etherparse::IpNumber::TCP {
            assert_eq!(packet.ethernet.destination, CS_MAC);
            return opened(&live.node, &packet);
        }
    }
}

#[track_caller]
fn begun(live: &Live, packet: &Segment, keep: Keep, responses: u8) {
    let message = told(live);
    assert_eq!((message.from, message.to), (ds(0), CS));
    let expected = Message::Begun {
        flow: flow(&live.client),
        keep,
        at: packet.seq,
        responses,
    };
    assert_eq!(message.message, expected);
    assert_eq!(message.packet, packet.packet());
}

const BEGINS: Counted<'_> = &[("ds_begins", 1)];
const MORE: Counted<'_> = &[("ds_begins_not", 1)];
const LATER: Counted<'_> = &[("ds_begins_later", 1)];

/// Before the response begins it is more of the request, as far as that was told to go; once that is over, it is another
/// one.
#[test]
fn a_body_and_what_follows_it() {
    on_own_host(|| {
        let live = strict();
        expect_bytes(&live.stream, GET);
        let mut sent = GET.len();
        let pieces = [&b"more "[..], GET, POST];
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let at = |sent, payload: &[u8]| {
            let packet = live.client.later(COOKIE, sent, 0).flags("PA");
            packet.payload(payload)
        };
        // Nobody said that it goes on, so this is no more of it; nor may anything lie behind a gap.
        begins(&live, &at(sent, b"more "));
        expect(&live.node, LATER);
        tell(&live, &at(sent, POST), LCCP_END_TOLD, bytes);
        expect_bytes(&live.stream, POST);
        sent += POST.len();
        for piece in pieces {
            begins(&live, &at(sent + 1, piece));
            expect(&live.node, LATER);
            let more = at(sent, piece);
            begins(&live, &more);
            expect(&live.node, MORE);
            expect_bytes(&live.stream, piece);
            // Again it is nothing new.
            begins(&live, &more);
            expect(&live.node, MORE);
            sent += piece.len();
        }
        // Behind its end there is another one.
        begins(&live, &at(sent, GET));
        expect(&live.node, LATER);
        (&live.stream).write_all(ANSWER).unwrap();
        let ack = live.client.later(COOKIE, sent, ANSWER.len() as u32);
        // What does not acknowledge the response may have been sent before it.
        let early = live.client.later(COOKIE, sent, 0).flags("PA").payload(GET);
        begins(&live, &early);
        expect(&live.node, LATER);
        let request = ack.flags("PA").payload(GET);
        begins(&live, &request);
        expect(&live.node, BEGINS);
        begun(&live, &request, Keep::Begins, 1);
        live.stream.set_nonblocking(true).unwrap();
        assert!(std::io::Read::read(&mut &live.stream, &mut [0; 9]).is_err());
    });
}

/// Its server does not wait for the body. What follows that is another request, and is not taken for a part of one that
/// has no answer yet.
#[test]
fn an_answer_before_the_body() {
    const BODY: &[u8] = b"hello";
    for (body, keep) in [
        (BODY, Keep::Begins),
        (&b"heTTP/1.1 200 OK"[..], Keep::Begins),
        // Nobody can say that this is not a request itself.
        (&b"heGET"[..], Keep::Unknown),
    ] {
        on_own_host(|| {
            let live = answered();
            let got = ANSWER.len() as u32;
            let at = |sent, got, payload: &[u8]| {
                let packet = live.client.later(COOKIE, GET.len() + sent, got);
                packet.flags("PA").payload(payload)
            };
            let post = at(0, got, POST);
            tell(&live, &post, LCCP_END_TOLD, body.len());
            expect_bytes(&live.stream, POST);
            (&live.stream).write_all(ANSWER).unwrap();
            // Some of it is still to come.
            begins(&live, &at(POST.len(), 2 * got, &body[..2]));
            expect(&live.node, MORE);
            let request = at(POST.len() + 2, 2 * got, GET);
            begins(&live, &request);
            expect(&live.node, &[("ds_begins", 1)]);
            begun(&live, &request, Keep::Unknown, 2);
            begins(&live, &at(POST.len() + 2, 2 * got, &body[2..]));
            expect(&live.node, MORE);
            // The server has not read it yet.
            let request = at(POST.len() + body.len(), 2 * got, GET);
            if keep == Keep::Begins {
                begins(&live, &request);
                expect(&live.node, LATER);
            }
            expect_bytes(&live.stream, body);
            begins(&live, &request);
            expect(&live.node, BEGINS);
            begun(&live, &request, keep, 2);
            // By now it counts as answered.
            if keep == Keep::Begins {
                begins(&live, &request);
                expect(&live.node, BEGINS);
                begun(&live, &request, keep, 2);
            }
        });
    }
}

/// Somebody else has acknowledged the bytes in the gap, and died.
#[test]
fn a_gap_for_good() {
    on_own_host(|| {
        let live = answered();
        let (sent, got) = (GET.len() + 100, ANSWER.len() as u32);
        let behind = live.client.later(COOKIE, sent, got).flags("PA");
        let behind = behind.payload("Cookie: a=b\r\n\r\n");
        begins(&live, &behind);
        expect(&live.node, LATER);
        let mut response = seen(&live.node, &live.stream);
        assert_eq!(response.gap_at, behind.seq.wrapping_sub(100));
        let Tick(long_ago) = tick_ago(Duration::from_secs(10));
        response.gap_since = long_ago;
        note(&live.node, &live.stream, &response);
        // Who does not know what was sent is a stranger.
        for ack in [got - 1, got + 1] {
            let forged = Segment {
                ack: behind.ack.wrapping_sub(got).wrapping_add(ack),
                ..behind.clone()
            };
            begins(&live, &forged);
            expect(&live.node, LATER);
        }
        begins(&live, &behind);
        expect(&live.node, BEGINS);
        begun(&live, &behind, Keep::Unknown, 1);
    });
}

/// A request goes on behind this packet, for so many bytes.
fn tell(live: &Live, packet: &Segment, how: u32, bytes: usize) {
    let end = packet
        .seq
        .wrapping_add((packet.payload.len() + bytes) as u32);
    let message = Message::Forward {
        flow: flow(&live.client),
        next: None,
        attempt: 0,
        end: u64::from(how) << LCCP_END_SHIFT | u64::from(end),
        is_behind: false,
    };
    send(&live.node, &message, packet);
    expect(&live.node, &[("ds_forwarded", 1)]);
}

/// What was told of an earlier connection on the same ports says nothing of the next one, wherever that begins.
#[test]
fn ports_that_are_used_again() {
    on_own_host(|| {
        let mut live = answered();
        tell(
            &live,
            &live.ack().flags("PA").payload(POST),
            LCCP_END_TOLD,
            100_000,
        );
        expect_bytes(&live.stream, POST);
        let sent = GET.len() + POST.len();
        forward(
            &live.node,
            &live
                .client
                .later(COOKIE, sent, ANSWER.len() as u32)
                .flags("RA"),
        );
        expect(&live.node, FORWARDED);
        // Its numbers are those of the body that did not come.
        let client = Client {
            isn: live.client.isn.wrapping_add(1000),
            ..live.client
        };
        let stream = adopted(&live.node, &live.listener, &client);
        live.client = client;
        live.stream = stream;
        expect_bytes(&live.stream, GET);
        (&live.stream).write_all(ANSWER).unwrap();
        let ack = live.client.later(COOKIE, GET.len(), ANSWER.len() as u32);
        forward(&live.node, &ack);
        expect(&live.node, FORWARDED);
        let request = ack.flags("PA").payload(GET);
        begins(&live, &request);
        expect(&live.node, BEGINS);
        begun(&live, &request, Keep::Begins, 1);
    });
}

/// Of a body whose end nobody can know, or with something behind it in the same packet.
#[test]
fn a_body_that_ends_who_knows_where() {
    for (how, bytes) in [(LCCP_END_UNKNOWN, 0), (LCCP_END_TOLD, 4)] {
        on_own_host(|| {
            let live = strict();
            expect_bytes(&live.stream, GET);
            let post = live.client.later(COOKIE, GET.len(), 0).flags("PA");
            tell(&live, &post.payload(POST), how, bytes);
            let sent = GET.len() + POST.len();
            let more = live.client.later(COOKIE, sent, 0).flags("PA");
            let more = more.payload("more ");
            begins(&live, &more);
            begun(&live, &more, Keep::Unknown, 0);
        });
    }
}

/// What comes again is delivered if all of it is here.
#[test]
fn whether_it_came_before() {
    on_own_host(|| {
        let live = strict();
        expect_bytes(&live.stream, GET);
        let again = |from: usize, to: usize| {
            let packet = live.client.later(COOKIE, from, 0).flags("PA");
            let packet = packet.payload(vec![b'x'; to - from]);
            let message = Message::Begins {
                flow: flow(&live.client),
                how: BEGINS_AGAIN as u8,
            };
            send(&live.node, &message, &packet);
            packet
        };
        for (from, to) in [(0, GET.len()), (3, 5)] {
            again(from, to);
            expect(&live.node, MORE);
        }
        for (from, to) in [(0, GET.len() + 1), (GET.len(), GET.len() + 1)] {
            let packet = again(from, to);
            let message = told(&live);
            let expected = Message::Begun {
                flow: flow(&live.client),
                keep: Keep::Missing,
                at: live.client.later(COOKIE, GET.len(), 0).seq,
                responses: 0,
            };
            assert_eq!(message.message, expected);
            assert_eq!(message.packet, packet.packet());
        }
    });
}

/// In the middle of a response it can be either: a client that waits does not send it then.
#[test]
fn while_a_response_is_under_way() {
    on_own_host(|| {
        let live = strict();
        expect_bytes(&live.stream, GET);
        let beginning = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
        (&live.stream).write_all(beginning).unwrap();
        let at = |written: usize| live.client.later(COOKIE, GET.len(), written as u32);
        forward(&live.node, &at(beginning.len()));
        expect(&live.node, FORWARDED);
        let request = at(beginning.len()).flags("PA").payload(GET);
        begins(&live, &request);
        expect(&live.node, LATER);
        (&live.stream).write_all(b"defghij").unwrap();
        forward(&live.node, &at(beginning.len() + 7));
        expect(&live.node, FORWARDED);
        let request = at(beginning.len() + 7).flags("PA").payload(GET);
        begins(&live, &request);
        expect(&live.node, BEGINS);
        begun(&live, &request, Keep::Begins, 1);
    });
}

#[test]
fn another_protocol_and_one_that_nobody_knows() {
    for (answer, keep) in [
        (
            &b"HTTP/1.1 101 Switching Protocols\r\n\r\n"[..],
            Keep::Tunnel,
        ),
        (b"220 smtp.example\r\n", Keep::Unknown),
    ] {
        on_own_host(|| {
            let live = strict();
            expect_bytes(&live.stream, GET);
            (&live.stream).write_all(answer).unwrap();
            let ack = live.client.later(COOKIE, GET.len(), answer.len() as u32);
            let data = ack.flags("PA").payload("hello");
            begins(&live, &data);
            begun(&live, &data, keep, 0);
        });
    }
}

/// A connection that is not here.
#[test]
fn nobody_has_it() {
    on_own_host(|| {
        let live = strict();
        let mut stranger = live.request();
        stranger.from.set_port(1);
        let client = crate::segment::Client {
            address: stranger.from,
            ..live.client
        };
        send(
            &live.node,
            &Message::Begins {
                flow: flow(&client),
                how: 0,
            },
            &stranger,
        );
        expect(&live.node, &[("ds_none", 1)]);
    });
}

#[test]
fn a_quiet_connection_goes_elsewhere() {
    on_own_host(|| {
        let live = answered();
        let request = live.ack().flags("PA").payload(POST);
        elsewhere(&live, &request, 1);
        expect(&live.node, &[("ds_handed_over", 1)]);
        let message = live.message_to(ds(1), ds_mac(1));
        assert_eq!(message.message, adopt(&live.client));
        assert_eq!(message.packet, request.packet());
    });
}

/// Nothing of it is delivered.
#[test]
fn one_that_is_not_quiet_withholds_it() {
    let cases: [(&str, fn() -> Live, u32, Keep); 4] = [
        ("the request before is not read", strict, 0, Keep::Unread),
        (
            "a response has not begun",
            || {
                let live = strict();
                expect_bytes(&live.stream, GET);
                live
            },
            0,
            Keep::Unfinished,
        ),
        (
            "one is under way",
            Live::answering,
            super::loopback::BEGINNING.len() as u32,
            Keep::Unfinished,
        ),
        (
            "some of it is not acknowledged",
            answered,
            ANSWER.len() as u32 - 1,
            Keep::Unsent,
        ),
    ];
    for (name, begin, acknowledged, why) in cases {
        on_own_host(|| {
            let live = begin();
            live.node.look();
            let request = live.client.later(COOKIE, GET.len(), acknowledged);
            let request = request.flags("PA").payload(GET);
            elsewhere(&live, &request, 1);
            expect(&live.node, &[("ds_withheld", 1)]);
            let message = told(&live);
            let expected = Message::Withheld {
                flow: flow(&live.client),
                tcb: counted(1),
                keep: why,
            };
            assert_eq!(message.message, expected, "{name}");
            assert_eq!(message.packet, request.packet(), "{name}");
        });
    }
}

/// What is for another pool no server here may see.
#[test]
fn without_a_way_to_anybody_it_is_not_delivered() {
    on_own_host(|| {
        let live = answered();
        for address in [ds(1), CS] {
            let none = DataServer::default();
            live.node.plane().set_peer(address, &none).unwrap();
        }
        let request = live.ack().flags("PA").payload(GET);
        elsewhere(&live, &request, 1);
        expect(&live.node, &[("ds_no_way", 1)]);
    });
}

/// Who cannot say where a response ends can never let go; who speaks another protocol by now is not asked again.
#[test]
fn one_that_can_never_let_go() {
    for (answer, unknown) in [
        (&b"220 smtp.example\r\n"[..], true),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", false),
    ] {
        on_own_host(|| {
            let live = strict();
            expect_bytes(&live.stream, GET);
            (&live.stream).write_all(answer).unwrap();
            let request = live.client.later(COOKIE, GET.len(), answer.len() as u32);
            let request = request.flags("PA").payload(GET);
            forward(
                &live.node,
                &live.client.later(COOKIE, GET.len(), answer.len() as u32),
            );
            elsewhere(&live, &request, 1);
            let (flow, tcb) = (flow(&live.client), counted(1));
            let expected = if unknown {
                Message::Withheld {
                    flow,
                    tcb,
                    keep: Keep::Unknown,
                }
            } else {
                expect_bytes(&live.stream, GET);
                Message::Keep {
                    flow,
                    tcb,
                    keep: Keep::Unfinished,
                }
            };
            assert_eq!(told(&live).message, expected);
        });
    }
}

/// A connection that was idle where it was, and has come with an acknowledgement alone.
fn idle() -> Live {
    let mut live = answered();
    live.client = Client::fresh();
    send_adopt(&live.node, &live.ack());
    let (stream, _) = accept(&live.listener);
    expect(&live.node, &[("ds_adopted", 1)]);
    // Until the end, or its FIN would be on the wire.
    std::mem::forget(std::mem::replace(&mut live.stream, stream));
    live
}

/// It is as quiet as one that has answered, though no response has been seen of it.
#[test]
fn one_that_came_idle_goes_on() {
    let made = |live: &Live| live.ack().options([1; 12]);
    on_own_host(|| {
        let live = idle();
        send(&live.node, &release(&live.client, 1), &made(&live));
        expect(&live.node, &[("ds_released", 1)]);
    });
    on_own_host(|| {
        let live = idle();
        elsewhere(&live, &live.request(), 0);
        expect(&live.node, &[("ds_handed_over", 1)]);
    });
    on_own_host(|| {
        let live = idle();
        begins(&live, &live.request());
        expect(&live.node, BEGINS);
        begun(&live, &live.request(), Keep::Begins, 0);
    });
    // Whatever has come since is to be answered first.
    on_own_host(|| {
        let live = idle();
        elsewhere(&live, &live.request(), 1);
        expect(&live.node, &[("ds_withheld", 1)]);
        send_adopt(&live.node, &live.request());
        expect(&live.node, &[("ds_duplicate", 1)]);
        expect_bytes(&live.stream, GET);
        let after = live
            .client
            .later(COOKIE, 2 * GET.len(), ANSWER.len() as u32);
        for requests in [0, 1] {
            elsewhere(&live, &after.clone().flags("PA").payload(GET), requests);
            expect(&live.node, &[("ds_withheld", 1)]);
        }
        send(
            &live.node,
            &release(&live.client, 1),
            &after.options([1; 12]),
        );
        expect(&live.node, &[("ds_release_refused", 1)]);
    });
}

/// Which of the client's bytes begin a request only the connection server knows: it has counted them.
#[test]
fn what_came_without_being_waited_for() {
    for (behind, requests, goes) in [
        // The rest of a body.
        (&b"hello"[..], 1, true),
        // Another request.
        (GET, 2, false),
    ] {
        on_own_host(|| {
            let live = answered();
            let more = live.ack().flags("PA").payload(behind);
            forward(&live.node, &more);
            expect(&live.node, FORWARDED);
            expect_bytes(&live.stream, behind);
            let request = live
                .client
                .later(COOKIE, GET.len() + behind.len(), ANSWER.len() as u32);
            elsewhere(&live, &request.flags("PA").payload(GET), requests);
            let counter = if goes {
                "ds_handed_over"
            } else {
                "ds_withheld"
            };
            expect(&live.node, &[(counter, 1)]);
        });
    }
}

/// Flags of TCP.
const FIN: u8 = 1;
const RST: u8 = 4;

/// A part of a head, for which its client waits: what is left of a socket knows nothing, but can say that it is none.
#[test]
fn how_much_has_come_where_the_server_has_closed() {
    on_own_host(|| {
        let live = answered();
        let Live {
            node,
            stream,
            wire,
            client,
            ..
        } = live;
        drop(stream);
        // What the kernel sends itself has no checksum yet.
        let flags = || wire.next().body[13];
        while flags() & FIN == 0 {}
        let ack = client.later(COOKIE, GET.len(), ANSWER.len() as u32 + 1);
        forward(&node, &ack);
        expect(&node, FORWARDED);
        let message = Message::Begins {
            flow: flow(&client),
            how: BEGINS_COME as u8,
        };
        send(&node, &message, &ack.flags("PA").payload("GET /d"));
        expect(&node, MORE);
        assert_eq!(flags(), RST);
    });
}
