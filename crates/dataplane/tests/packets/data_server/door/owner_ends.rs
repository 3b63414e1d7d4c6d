//! Connections that cannot go on as they should: their clients are told, and no request is done twice.

use std::{io::Read as _, net::TcpStream, os::fd::AsRawFd as _};

use baton_abi::{
    ADOPT_ATTEMPTS, DATA_SERVER_DEAD, DATA_SERVER_DEAF, DOOR_BROKEN, DOOR_NOBODY, Door, RouteKey,
};
use baton_wire::{Message, Refusal};
use libbpf_rs::{MapCore as _, MapFlags};
use zerocopy::FromBytes as _;

use super::owner::{ELSEWHERE, HANDED_ON, HERE, LET_IN, ended, goes_with, lets_in, owned, request};
use crate::{
    data_server::agent::reader::{READS, with_agent},
    prelude::*,
};

pub const POST: &[u8] = b"POST /ds2/a HTTP/1.1\r\nHost: 10.77.0.100\r\nContent-Length: 1\r\n\r\nx";

fn mark(node: &Node, server: u16, flag: u32) {
    let mut marked = data_server(server);
    marked.flags |= flag as u8;
    node.plane().set_data_server(server, &marked).unwrap();
}

pub fn kill_next(node: &Node) {
    mark(node, 1, DATA_SERVER_DEAD);
}

/// If a server has written two responses to one request, it is no longer known which response the next request has to
/// wait for.
#[test]
fn a_connection_with_more_responses_than_requests_ends() {
    let _host = own_host();
    let mut live = owned();
    lets_in(&live, HERE);
    live.answer_another(HERE.len());
    live.answer_another(0);
    live.forwards(&request(&live, ELSEWHERE), &[("ds_door_stays", 1)]);
    ended(&live);
    live.nothing_sent();
}

/// Where the counts of requests and responses say nothing, requests for this data server are let in.
#[test]
fn with_more_responses_than_requests_what_stays_is_let_in() {
    let _host = own_host();
    let mut live = owned();
    lets_in(&live, HERE);
    live.answer_another(HERE.len());
    live.answer_another(0);
    lets_in(&live, HERE);
}

/// The data server to which the connection went may have done the request before it died. So a POST does not begin here
/// again: the connection server is told NONE.
#[test]
fn what_may_not_be_done_twice_does_not_begin_here_again() {
    let _host = own_host();
    let live = owned();
    let post = request(&live, POST);
    goes_with(&live, &post);
    ended(&live);
    kill_next(&live.node);
    live.forwards(&post, &[("ds_none", 1)]);
    let told = live.message_to(CS, CS_MAC).message;
    assert!(matches!(told, Message::None { .. }), "{told:?}");
    assert!(nothing_to_accept(&live.listener));
}

/// A POST that came with an ADOPT, and went on to a data server that has died since, goes to no third one.
#[test]
fn nor_does_it_go_to_a_third() {
    let _host = own_host();
    let mut live = owned();
    live.client = Client::fresh();
    let post = live.client.get(COOKIE).payload(POST);
    send(&live.node, &adopt(&live.client), &post);
    live.expect(HANDED_ON);
    live.message_to(CS, CS_MAC);
    assert_eq!(live.message_to(ds(1), ds_mac(1)).packet, post.packet());
    kill_next(&live.node);
    send(&live.node, &adopt(&live.client), &post);
    is_refused_for_all(&live);
}

/// Asserts that the connection began here once more, and that its server gets `text`. From then on `live` has the new
/// socket.
#[track_caller]
pub fn begins_here(live: &mut Live, text: &[u8]) {
    let back = [
        ("ds_adopted", 1),
        ("ds_door_back", 1),
        ("ds_door_request", 1),
    ];
    live.expect(&back);
    live.stream = accept(&live.listener).0;
    expect_bytes(&live.stream, text);
    live.has_acks = true;
    live.nothing_sent();
}

/// If the data server to which a GET went has died, or takes no messages because its clock is wrong, the connection
/// begins here once more with that GET. By then this data server may answer it.
#[test]
fn what_may_be_done_twice_begins_here_again() {
    let _host = own_host();
    for flag in [DATA_SERVER_DEAD, DATA_SERVER_DEAF] {
        let mut live = owned();
        let get = request(&live, ELSEWHERE);
        goes_with(&live, &get);
        ended(&live);
        let route = RouteKey::of(0, 0, b"/ds2/").unwrap();
        let here = u32::from(first_pool_of_one());
        live.node.routing().set_routes(&[(route, here)]).unwrap();
        mark(&live.node, 1, flag);
        live.forward(&get);
        begins_here(&mut live, ELSEWHERE);
    }
}

/// A data server that takes no messages because its clock is wrong still lives, and may have got the POST before. So
/// the POST follows its connection there.
#[test]
fn what_may_not_be_done_twice_follows_to_who_takes_no_messages() {
    let _host = own_host();
    let live = owned();
    let post = request(&live, POST);
    goes_with(&live, &post);
    ended(&live);
    mark(&live.node, 1, DATA_SERVER_DEAF);
    live.forwards(&post, &[("ds_door_again", 1)]);
    live.message_to(CS, CS_MAC);
    assert!(live.message_to(ds(1), ds_mac(1)).packet.ends_with(POST));
}

/// Asserts that the agent has the connection on socket `read` in order to answer 400.
#[track_caller]
fn is_broken(live: &Live, read: &TcpStream) {
    let doors = map_named(live.node.plane(), "doors");
    let door = doors.lookup(&read.as_raw_fd().to_ne_bytes(), MapFlags::ANY);
    let door = Door::read_from_bytes(&door.unwrap().unwrap()).unwrap();
    assert_ne!(u32::from(door.flags) & DOOR_BROKEN, 0);
}

const CHUNKED: &str = "POST /ds1/a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

/// The agent tells the client that the body of its request is invalid, whatever server would have got the request.
#[test]
fn a_request_whose_body_is_none_is_answered_by_the_agent() {
    let _host = own_host();
    for is_first in [true, false] {
        let (mut live, agent) = with_agent();
        let text = format!("{CHUNKED}5x\r\n");
        if is_first {
            live.client = Client::fresh();
            let post = live.client.get(COOKIE).payload(text.as_bytes());
            send(&live.node, &adopt(&live.client), &post);
        } else {
            live.forward(&request(&live, text.as_bytes()));
        }
        live.expect(READS);
        let (read, _) = accept(&agent);
        expect_bytes(&read, text.as_bytes());
        let behind = live.client.later(COOKIE, 0, 0);
        let seq = live.client.get(COOKIE).seq;
        let sent = if is_first { 0 } else { live.sent as u32 };
        let behind = behind.seq(seq.wrapping_add(sent + text.len() as u32));
        live.forwards(&behind, &[("ds_forwarded", 1)]);
        is_broken(&live, &read);
        assert!(nothing_to_accept(&live.listener));
    }
}

/// If a body turns out to be invalid only after its head, the agent answers as long as the server has not begun to. A
/// server that has begun to answer gets a FIN: it hears that no more of the body comes.
#[test]
fn a_body_that_turns_out_to_be_none_is_answered_by_the_agent() {
    let _host = own_host();
    for is_answered in [false, true] {
        let (mut live, agent) = with_agent();
        let head = request(&live, format!("{CHUNKED}1\r\nx\r\n").as_bytes());
        live.forwards(&head, LET_IN);
        expect_bytes(&live.stream, &head.payload);
        live.sent += head.payload.len();
        if is_answered {
            live.write();
            live.answers += 1;
        }
        let rest = live.ack().flags("PA").payload("nonsense");
        live.forward(&rest);
        if is_answered {
            let delivered = [("ds_forwarded", 1), ("ds_door_unreadable", 1)];
            live.expect(&delivered);
            assert_eq!((&live.stream).read(&mut [0; 16]).unwrap(), 0);
            assert!(nothing_to_accept(&agent));
            continue;
        }
        live.expect(READS);
        ended(&live);
        let (read, _) = accept(&agent);
        expect_bytes(&read, b"nonsense");
        live.sent += rest.payload.len();
        live.forwards(&live.ack(), &[("ds_forwarded", 1)]);
        is_broken(&live, &read);
    }
}

/// The request before one with an invalid body is answered first.
#[test]
fn a_request_whose_body_is_none_waits_for_the_response_before() {
    let _host = own_host();
    let (mut live, agent) = with_agent();
    let bad = format!("{CHUNKED}5x\r\n");
    let both = [HERE, bad.as_bytes()].concat();
    live.client = Client::fresh();
    let first = live.client.get(COOKIE).payload(both);
    send(&live.node, &adopt(&live.client), &first);
    let cut = [("ds_door_cut", 1), ("ds_door_waits", 1)];
    live.expect(&[ADOPTED, &cut].concat());
    live.stream = accept(&live.listener).0;
    expect_bytes(&live.stream, HERE);
    (live.sent, live.answers) = (HERE.len(), 0);
    let rest = live.ack().flags("PA").payload(bad.as_bytes());
    live.forwards(&rest, &[("ds_door_waits", 1), ("ds_door_withheld", 1)]);
    live.write();
    live.answers = 1;
    let rest = live.ack().flags("PA").payload(bad.as_bytes());
    live.forwards(&rest, READS);
    let (read, _) = accept(&agent);
    expect_bytes(&read, bad.as_bytes());
}

/// Where there is no agent, the connection server tells the client that its first request has an invalid body.
#[test]
fn a_first_request_whose_body_is_none_is_refused() {
    let _host = own_host();
    let mut live = owned();
    live.client = Client::fresh();
    let text = format!("{CHUNKED}5x\r\n");
    let post = live.client.get(COOKIE).payload(text);
    send(&live.node, &adopt(&live.client), &post);
    live.expect(&[("ds_refused", 1), ("ds_door_unreadable", 1)]);
    let Message::Refused { tcb, .. } = live.message_to(CS, CS_MAC).message else {
        panic!("not refused");
    };
    assert_eq!(tcb.attempt, ADOPT_ATTEMPTS as u8);
    assert!(nothing_to_accept(&live.listener));
}

/// Sends an ADOPT that is for another data server, with its last attempt: the tables of the data servers differ, and
/// each has passed the request on.
fn passed_on_by_all(live: &mut Live) {
    live.client = Client::fresh();
    let request = live.client.get(COOKIE).payload(ELSEWHERE);
    let last = adopt_after(&live.client, ADOPT_ATTEMPTS as u8 - 1);
    send(&live.node, &last, &request);
}

/// Asserts that the request was refused for all data servers: REFUSED leaves no attempt for another one.
#[track_caller]
fn is_refused_for_all(live: &Live) {
    live.expect(&[("ds_refused", 1)]);
    let Message::Refused { tcb, refusal, .. } = live.message_to(CS, CS_MAC).message else {
        panic!("not refused");
    };
    let all = ADOPT_ATTEMPTS as u8;
    assert_eq!((tcb.attempt, refusal), (all, Refusal::Unreadable));
}

#[test]
fn what_is_always_another_s_is_refused_where_no_agent_can_answer() {
    let _host = own_host();
    let mut live = owned();
    passed_on_by_all(&mut live);
    is_refused_for_all(&live);
}

#[test]
fn what_is_always_another_s_is_answered_by_the_last_one_s_agent() {
    let _host = own_host();
    let (mut live, agent) = with_agent();
    passed_on_by_all(&mut live);
    live.expect(&[READS, &[("ds_door_nobody", 1)]].concat());
    let (read, _) = accept(&agent);
    expect_bytes(&read, ELSEWHERE);
    let doors = map_named(live.node.plane(), "doors");
    // The next packet moves the door from `doors_begun` to the socket.
    live.forwards(
        &live.client.later(COOKIE, ELSEWHERE.len(), 0),
        &[("ds_forwarded", 1)],
    );
    let door = doors.lookup(&read.as_raw_fd().to_ne_bytes(), MapFlags::ANY);
    let door = Door::read_from_bytes(&door.unwrap().unwrap()).unwrap();
    assert_ne!(u32::from(door.flags) & DOOR_NOBODY, 0);
    assert!(nothing_to_accept(&live.listener));
}
