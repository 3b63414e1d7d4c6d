//! Connections of an agent's own, which speaks TLS in place of a server, move when the agent says so, to the data server
//! that it names. The program looks only whether anything is under way between agent and client.

use std::io::Write as _;

use baton_wire::Message;

use super::leave::but_echo;
use crate::{
    client_hello::Hello,
    data_server::door::{
        owner::{ELSEWHERE, ended, told_moved},
        tls::{OURS, begins_here, tls},
    },
    prelude::*,
};

const MOVED: Counted<'_> = &[("ds_door_handed_on", 1), ("ds_moved", 1)];
const REFUSED: Counted<'_> = &[("ds_move_refused", 1)];
const AGAIN: Counted<'_> = &[("ds_move_again", 1)];
const GONE: Counted<'_> = &[("ds_release_gone", 1)];

/// A TLS connection that has begun here, whose client has acknowledged an answer.
fn at_pause() -> Live {
    let (mut live, _agent) = tls(0);
    begins_here(&mut live, &Hello::of(OURS));
    live.answer_another(0);
    live
}

/// Sends in the empty ACK with which the daemon has the connection move to the data server in this slot.
fn move_to(live: &Live, slot: u16) {
    let ack = live.client.later(0, 0, 0).options([1; 12]);
    let reading = live.node.data_server().reading(LOOPBACK).unwrap();
    reading.move_to(slot, &frame_here(&ack)).unwrap();
}

/// Asserts that data server 1 gets an ADOPT with what the client would say now.
#[track_caller]
fn adopted_there(live: &Live, last: &Segment) {
    let adopts = live.message_to(ds(1), ds_mac(1));
    let Message::Adopt { flow: of, .. } = &adopts.message else {
        panic!("{adopts:?}")
    };
    assert_eq!(*of, flow(&live.client));
    assert_eq!(but_echo(&adopts.packet), but_echo(&last.packet()));
}

/// Has the connection move to data server 1, and asserts that the connection server is told.
#[track_caller]
fn moves_away(live: &Live) {
    move_to(live, 1);
    live.expect(MOVED);
    adopted_there(live, &live.ack());
    told_moved(live, &live.ack());
}

#[test]
fn it_goes_where_the_agent_says() {
    let _host = own_host();
    let live = at_pause();
    moves_away(&live);
    ended(&live);
}

/// The ADOPT may be lost, and the client, which waits for a response, says nothing. So the agent's node sends it again.
#[test]
fn it_is_sent_there_again() {
    let _host = own_host();
    let live = at_pause();
    moves_away(&live);
    for _ in 0..3 {
        move_to(&live, 1);
        live.expect(AGAIN);
        told_moved(&live, &live.ack());
        adopted_there(&live, &live.ack());
    }
    // It went to data server 1, and to nobody else.
    move_to(&live, 2);
    live.expect(GONE);
    live.nothing_sent();
}

#[test]
fn it_stays_while_something_is_under_way() {
    let _host = own_host();
    let mut live = at_pause();
    // The agent has not read what has come.
    let more = live.ack().flags("PA").payload("more");
    live.forwards(&more, FORWARDED);
    move_to(&live, 1);
    live.expect(REFUSED);
    expect_bytes(&live.stream, b"more");
    live.sent += "more".len();
    // The client has not acknowledged what was said.
    live.stream.write_all(b"answer").unwrap();
    move_to(&live, 1);
    live.expect(REFUSED);
    // Nobody is in that slot.
    move_to(&live, 200);
    live.expect(REFUSED);
}

#[test]
fn one_that_is_not_here_does_not_move() {
    let _host = own_host();
    let mut live = at_pause();
    live.client = Client::fresh();
    move_to(&live, 1);
    live.expect(GONE);
    live.nothing_sent();
}

/// Has a connection come that was moved so often since its client said something.
#[track_caller]
fn comes(live: &mut Live, moves: u8) {
    let adopts = adopt_after(&live.client, moves);
    send(&live.node, &adopts, &live.client.later(COOKIE, 0, 0));
    live.stream = accept(&live.listener).0;
    live.expect(&[("ds_adopted", 1)]);
    live.has_acks = true;
}

/// Returns a TLS connection that has come here with an empty ACK.
fn come() -> Live {
    let (mut live, _agent) = tls(0);
    live.client = Client::fresh();
    (live.sent, live.answers) = (0, 0);
    comes(&mut live, 1);
    live
}

/// Data servers may name each other, because their tables differ. Then a connection comes back before its client has said
/// anything. Each move has a higher number, so that it is no late copy of an earlier one.
#[test]
fn it_may_come_back_at_once() {
    let _host = own_host();
    let mut live = come();
    for moves in [1, 3, 5] {
        if moves > 1 {
            comes(&mut live, moves);
        }
        move_to(&live, 1);
        live.expect(MOVED);
        live.adopted_by_next(moves + 1);
        told_moved(&live, &live.ack());
        ended(&live);
    }
    // A copy of an ADOPT with which it came follows it.
    send(
        &live.node,
        &adopt_after(&live.client, 3),
        &live.client.later(COOKIE, 0, 0),
    );
    live.expect(&[("ds_door_followed", 1)]);
    assert!(nothing_to_accept(&live.listener));
}

/// What the client has said behind the empty ACK may come first, in an ADOPT. It does not begin the connection.
#[test]
fn what_comes_ahead_of_it_waits_for_it() {
    let _host = own_host();
    let (mut live, agent) = tls(0);
    live.client = Client::fresh();
    let record = live
        .client
        .later(COOKIE, 0, 0)
        .flags("PA")
        .payload([23; 100]);
    send(&live.node, &adopt_after(&live.client, 1), &record);
    live.expect(&[("ds_ahead", 1)]);
    assert!(nothing_to_accept(&live.listener) && nothing_to_accept(&agent));
    live.nothing_sent();
}

/// Where it comes nothing is judged of what its client says: neither what looks like a request for another data server,
/// nor a ClientHello for one.
#[test]
fn where_it_comes_everything_is_let_in() {
    let _host = own_host();
    let mut live = come();
    let hello = Hello::of("other.test").whole();
    for text in [&hello[..], ELSEWHERE, &[23; 100]] {
        live.forwards(&live.ack().flags("PA").payload(text), FORWARDED);
        expect_bytes(&live.stream, text);
        live.sent += text.len();
    }
    live.nothing_sent();
    // It may go on from there.
    live.answer_another(0);
    move_to(&live, 1);
    live.expect(MOVED);
    adopted_there(&live, &live.ack());
}
