//! TLS connections whose ClientHello was let in: nothing that follows is judged, and none leaves.

use std::{
    io::Read as _,
    net::{TcpListener, TcpStream},
    os::fd::AsRawFd as _,
};

use baton_abi::{HaveRead, RESPONSE_UNKNOWN, SERVICE_REFUSES, SERVICE_STAYS};
use libbpf_rs::MapCore as _;

use super::{
    owner::{ELSEWHERE, HANDED_ON, end_of},
    tls::{OTHERS_NAME, OURS, begin, begins_here, goes_on, tls},
};
use crate::{
    client_hello::Hello,
    data_server::{
        agent::reader::{DELIVERED, GIVEN, READS, cut, note_read, send_in},
        handover::leave::{STAYS, ask_for_rest, leave, members},
        response::responses::seen,
    },
    merged::send_merged,
    prelude::*,
    tls_routes::{A, B, number},
};

/// Once the ClientHello was let in, nothing is judged: neither what looks like a request for another data server, nor a
/// ClientHello for it. It is let in whatever its order, and before the server has said anything as well as after that.
/// What the server says here looks like a whole response, with which a connection of HTTP is quiet.
#[test]
fn nothing_that_follows_is_judged() {
    let _host = own_host();
    let (mut live, agent) = tls(SERVICE_REFUSES);
    live.answer = ANSWER;
    begins_here(&mut live, &Hello::of(OURS));
    let hello = Hello::of(OTHERS_NAME).whole();
    let texts: [&[u8]; 6] = [
        ELSEWHERE,
        &hello,
        b"G",
        b"HEAD /ds2/ HTTP/1.1\r\n\r\n",
        b"POST /ds2/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        &[0; 1300],
    ];
    for has_answered in [false, true, true] {
        if has_answered {
            live.answer_another(0);
        }
        for text in texts {
            let one = live.ack().flags("PA").payload(text);
            let [first, second] = cut(&one, text.len() / 2);
            let last = one.clone().seq(end_of(&one)).payload(hello.clone());
            // Out of order, in pieces, and again.
            for packet in [&last, &second, &last] {
                live.forwards(packet, FORWARDED);
            }
            if !first.payload.is_empty() {
                live.forwards(&first, FORWARDED);
            }
            for packet in [&one, &last] {
                live.forwards(packet, FORWARDED);
            }
            expect_bytes(&live.stream, &[text, &hello].concat());
            live.sent += text.len() + hello.len();
        }
    }
    live.forwards(&live.ack(), FORWARDED);
    live.nothing_sent();
    assert!(nothing_to_accept(&agent) && nothing_to_accept(&live.listener));
}

/// What a server says is not read, whatever it looks like. So it is no response of HTTP that is not understood, and no
/// counter of responses moves.
#[test]
fn what_its_server_says_is_not_read() {
    let _host = own_host();
    for answer in [b"\x16\x03\x03\0\x05hello", ANSWER, b"HTTP/1.1 2"] {
        let (mut live, _agent) = tls(0);
        live.answer = answer;
        begins_here(&mut live, &Hello::of(OURS));
        for _ in 0..3 {
            live.answer_another(0);
        }
        assert_eq!(
            u32::from(seen(&live.node, &live.stream).state),
            RESPONSE_UNKNOWN
        );
    }
}

#[test]
fn a_merged_packet_is_let_in_as_a_whole() {
    let _host = own_host();
    let (mut live, _agent) = tls(0);
    begins_here(&mut live, &Hello::of(OURS));
    let many = ELSEWHERE.repeat(200);
    send_merged(&live.ack().flags("PA").payload(many.clone()), 1348);
    live.expect(DELIVERED);
    expect_bytes(&live.stream, &many);
}

/// A client may end its connection with data or without, and the server may still answer.
#[test]
fn a_connection_ends_with_its_clients_fin() {
    let _host = own_host();
    let (mut live, _agent) = tls(0);
    for last in [&b""[..], ELSEWHERE] {
        begins_here(&mut live, &Hello::of(OURS));
        live.answer_another(0);
        live.forwards(&live.ack().flags("FPA").payload(last), FORWARDED);
        let mut all = Vec::new();
        (&live.stream).read_to_end(&mut all).unwrap();
        assert_eq!(all, last);
        live.write();
    }
    live.forwards(&live.ack().flags("RA"), FORWARDED);
}

/// A ClientHello comes again as a duplicate, also with more behind it, and nothing is let in twice.
#[test]
fn a_hello_comes_again() {
    let _host = own_host();
    let (mut live, _agent) = tls(0);
    let first = begins_here(&mut live, &Hello::of(OURS));
    live.adopts(&first, &[("ds_duplicate", 1)]);
    live.forwards(&first, FORWARDED);
    let more = first.clone().payload([&first.payload, ELSEWHERE].concat());
    live.adopts(&more, &[("ds_duplicate", 1)]);
    live.forwards(&more, FORWARDED);
    expect_bytes(&live.stream, ELSEWHERE);
    let last = more.clone().seq(end_of(&more)).payload("last");
    live.forwards(&last, FORWARDED);
    expect_bytes(&live.stream, b"last");
    // If another ClientHello comes in place of the first one, the first one counts.
    let other = first.payload(Hello::of(OTHERS_NAME).whole());
    live.forwards(&other, FORWARDED);
    live.adopts(&other, &[("ds_duplicate", 1)]);
    live.forwards(&last.clone().seq(end_of(&last)), FORWARDED);
    expect_bytes(&live.stream, b"last");
}

/// The connection is never at rest: it does not leave a data server that drains, and the connection server is not told
/// that it could go on elsewhere.
#[test]
fn a_connection_does_not_leave() {
    let _host = own_host();
    for flags in [0, SERVICE_STAYS] {
        let (mut live, _agent) = tls(flags);
        begins_here(&mut live, &Hello::of("x"));
        members(&live, 0b10);
        for answers in 0..3 {
            does_not_leave(&live);
            live.answer_another(0);
            assert_eq!(live.answers, answers + 1);
            does_not_leave(&live);
            let next = live.ack().flags("PA").payload(ELSEWHERE);
            live.forwards(&next, FORWARDED);
            expect_bytes(&live.stream, ELSEWHERE);
            live.sent += ELSEWHERE.len();
        }
    }
}

#[track_caller]
fn does_not_leave(live: &Live) {
    leave(live);
    live.expect(STAYS);
    ask_for_rest(live);
    live.nothing_sent();
}

/// The pools change while connections are here. Only the next ones are judged by the new ones.
#[test]
fn a_connection_stays_whatever_its_pool_becomes() {
    let _host = own_host();
    let (mut live, _agent) = tls(0);
    begins_here(&mut live, &Hello::of("x"));
    members(&live, 0b10);
    live.answer_another(0);
    let next = live.ack().flags("PA").payload("next");
    live.forwards(&next, FORWARDED);
    expect_bytes(&live.stream, b"next");
    let first = begin(&mut live, Hello::of("x").whole());
    goes_on(&live, &first);
}

/// A connection that began before its service had a door has none, and goes on all the same.
#[test]
fn a_connection_without_a_door_stays() {
    let _host = own_host();
    let (mut live, _agent) = tls(0);
    begins_here(&mut live, &Hello::of(OURS));
    live.answer_another(0);
    let doors = map_named(live.node.plane(), "doors");
    let socket = live.stream.as_raw_fd().to_ne_bytes();
    doors.delete(&socket).unwrap();
    let next = live.ack().flags("PA").payload(ELSEWHERE);
    let last = next.clone().flags("FPA").seq(end_of(&next));
    for packet in [&last, &next, &last] {
        live.forwards(packet, FORWARDED);
    }
    let mut all = Vec::new();
    (&live.stream).read_to_end(&mut all).unwrap();
    assert_eq!(all, [ELSEWHERE, ELSEWHERE].concat());
}

/// Notes what the agent has read: that all of `known` is a ClientHello for this pool.
fn note_hello(live: &Live, read: &TcpStream, known: &Segment, pool: u16) {
    let known = HaveRead {
        end: end_of(known),
        head: known.payload.len() as u32,
        pool,
        route: number(0),
        large: [0, 1 << 30],
        ..HaveRead::default()
    };
    note_read(live, read, &known);
}

/// Adopts a connection that begins with this ClientHello in two packets, so that the agent reads it, and has the agent
/// give it back as one for this pool.
#[track_caller]
fn gives_back(live: &Live, agent: &TcpListener, first: &Segment, pool: u16) {
    let [begins, rest] = cut(first, 100);
    live.adopts(&begins, READS);
    live.forwards(&rest, FORWARDED);
    let (read, _) = accept(agent);
    note_hello(live, &read, first, pool);
    send_in(live, first);
}

/// The agent gives back a ClientHello that it has read, and nothing is judged from then on.
#[test]
fn what_the_agent_has_read_its_server_gets() {
    let _host = own_host();
    let (mut live, agent) = tls(0);
    // What the packet shows is for another data server, and it is not all.
    let whole = Hello::of(OTHERS_NAME).in_records(40);
    let first = begin(&mut live, whole);
    gives_back(&live, &agent, &first, A);
    live.expect(GIVEN);
    live.stream = accept(&live.listener).0;
    expect_bytes(&live.stream, &first.payload);
    live.sent = first.payload.len();
    send_in(&live, &first);
    live.expect(&[("ds_door_repeated", 1)]);
    let next = live.ack().flags("PA").payload(ELSEWHERE);
    for packet in [next.clone().seq(end_of(&next)), next] {
        live.forwards(&packet, FORWARDED);
    }
    expect_bytes(&live.stream, &[ELSEWHERE, ELSEWHERE].concat());
    live.sent += 2 * ELSEWHERE.len();
    live.answer_another(0);
    does_not_leave(&live);
}

/// A ClientHello that the agent has read goes to the data server that it is for, also in one packet that the door could
/// judge: what the agent has read counts.
#[test]
fn what_the_agent_has_read_for_another_goes_there() {
    let _host = own_host();
    let (mut live, agent) = tls(0);
    let whole = Hello::of(OURS).whole();
    let first = begin(&mut live, whole);
    gives_back(&live, &agent, &first, B);
    live.expect(HANDED_ON);
    let adopts = live.adopted_by_next(1);
    assert!(adopts.packet.ends_with(&first.payload));
    assert!(nothing_to_accept(&live.listener));
}

/// Two data servers may have the pool of a ClientHello. If the packet shows the pool, the connection server has chosen
/// one of them, and that one keeps the connection. If the agent has read it, the connection server knew nothing of the
/// pool, and the pool's policy chooses now.
#[test]
fn of_two_that_may_have_it_the_policy_chooses() {
    let _host = own_host();
    let (mut live, agent) = tls(0);
    let mut pool = live.node.routing().pool(B).unwrap();
    pool.members[0] = 0b11;
    live.node.routing().set_pool(B, &pool).unwrap();
    begins_here(&mut live, &Hello::of(OTHERS_NAME));
    let first = begin(&mut live, Hello::of(OTHERS_NAME).whole());
    gives_back(&live, &agent, &first, B);
    live.expect(HANDED_ON);
    assert!(nothing_to_accept(&live.listener));
}
