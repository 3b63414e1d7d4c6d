//! Connections that cannot go on as they should: each of their clients is told, and no request is done twice.

use std::{io::Read as _, net::TcpStream, os::fd::AsRawFd as _};

use baton_abi::{
    ADOPT_ATTEMPTS, DATA_SERVER_DEAD, DATA_SERVER_DEAF, DOOR_BROKEN, DOOR_NOBODY, Door, RouteKey,
};
use baton_wire::{Message, Refusal};
use libbpf_rs::{MapCore as _, MapFlags};
use zerocopy::FromBytes as _;

use super::owner::{ELSEWHERE, HANDED_ON, HERE, LET_IN, ended, goes_with, lets_in, owned, request};
use crate::data_server::{
    adopt::loopback::{ADOPTED, COOKIE, Live, expect, expect_bytes, forward, send},
    agent::reader::{READS, with_agent},
};
use crate::{
    blank::map_named,
    cluster::{CS, CS_MAC, data_server, ds, ds_mac, first_pool_of_one},
    host::{accept, nothing_to_accept, on_own_host},
    lccp::adopt,
    node::Node,
    segment::Client,
};

const POST: &[u8] = b"POST /ds2/a HTTP/1.1\r\nHost: 10.77.0.100\r\nContent-Length: 1\r\n\r\nx";

fn mark(node: &Node, server: u16, flag: u32) {
    let mut marked = data_server(server);
    marked.flags |= flag as u8;
    node.plane().set_data_server(server, &marked).unwrap();
}

pub fn kill_next(node: &Node) {
    mark(node, 1, DATA_SERVER_DEAD);
}

/// Its server has written two responses to one request: which one the next request waits for is not known any more.
#[test]
fn a_connection_with_more_responses_than_requests_ends() {
    on_own_host(|| {
        let mut live = owned();
        lets_in(&live, HERE);
        live.answer_another(HERE.len());
        live.answer_another(0);
        forward(&live.node, &request(&live, ELSEWHERE));
        expect(&live.node, &[("ds_door_stays", 1)]);
        ended(&live);
        live.nothing_sent();
    });
}

/// The data server that it went to may have done the request before it died.
#[test]
fn what_may_not_be_done_twice_does_not_begin_here_again() {
    on_own_host(|| {
        let live = owned();
        let post = request(&live, POST);
        goes_with(&live, &post);
        ended(&live);
        kill_next(&live.node);
        forward(&live.node, &post);
        expect(&live.node, &[("ds_none", 1)]);
        let told = live.message_to(CS, CS_MAC).message;
        assert!(matches!(told, Message::None { .. }), "{told:?}");
        assert!(nothing_to_accept(&live.listener));
    });
}

/// The same of a request that came with an ADOPT, and went on as one.
#[test]
fn nor_does_it_go_to_a_third() {
    on_own_host(|| {
        let mut live = owned();
        live.client = Client::fresh();
        let post = live.client.get(COOKIE).payload(POST);
        send(&live.node, &adopt(&live.client), &post);
        expect(&live.node, HANDED_ON);
        live.message_to(CS, CS_MAC);
        assert_eq!(live.message_to(ds(1), ds_mac(1)).packet, post.packet());
        kill_next(&live.node);
        send(&live.node, &adopt(&live.client), &post);
        is_refused_for_all(&live);
    });
}

/// It began here: the same text.
#[track_caller]
pub fn begins_here(live: &mut Live, text: &[u8]) {
    let back = [
        ("ds_adopted", 1),
        ("ds_door_back", 1),
        ("ds_door_request", 1),
    ];
    expect(&live.node, &back);
    live.stream = accept(&live.listener).0;
    expect_bytes(&live.stream, text);
    live.has_acks = true;
    live.nothing_sent();
}

/// Its request began nothing at a data server that has died, or takes no messages because its clock is wrong: it begins here once more,
/// where that may answer it by now.
#[test]
fn what_may_be_done_twice_begins_here_again() {
    on_own_host(|| {
        for flag in [DATA_SERVER_DEAD, DATA_SERVER_DEAF] {
            let mut live = owned();
            let get = request(&live, ELSEWHERE);
            goes_with(&live, &get);
            ended(&live);
            let route = RouteKey::of(0, 0, b"/ds2/").unwrap();
            let here = u32::from(first_pool_of_one());
            live.node.routing().set_routes(&[(route, here)]).unwrap();
            mark(&live.node, 1, flag);
            forward(&live.node, &get);
            begins_here(&mut live, ELSEWHERE);
        }
    });
}

/// It lives, and may have got the request before its clock was wrong.
#[test]
fn what_may_not_be_done_twice_follows_to_who_takes_no_messages() {
    on_own_host(|| {
        let live = owned();
        let post = request(&live, POST);
        goes_with(&live, &post);
        ended(&live);
        mark(&live.node, 1, DATA_SERVER_DEAF);
        forward(&live.node, &post);
        expect(&live.node, &[("ds_door_again", 1)]);
        live.message_to(CS, CS_MAC);
        assert!(live.message_to(ds(1), ds_mac(1)).packet.ends_with(POST));
    });
}

/// The agent has its connection, to answer 400.
#[track_caller]
fn is_broken(live: &Live, read: &TcpStream) {
    let doors = map_named(live.node.plane(), "doors");
    let door = doors.lookup(&read.as_raw_fd().to_ne_bytes(), MapFlags::ANY);
    let door = Door::read_from_bytes(&door.unwrap().unwrap()).unwrap();
    assert_ne!(u32::from(door.flags) & DOOR_BROKEN, 0);
}

const CHUNKED: &str = "POST /ds1/a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Its client is told, whatever server would have got it.
#[test]
fn a_request_whose_body_is_none_is_answered_by_the_agent() {
    on_own_host(|| {
        for is_first in [true, false] {
            let (mut live, agent) = with_agent();
            let text = format!("{CHUNKED}5x\r\n");
            if is_first {
                live.client = Client::fresh();
                let post = live.client.get(COOKIE).payload(text.as_bytes());
                send(&live.node, &adopt(&live.client), &post);
            } else {
                forward(&live.node, &request(&live, text.as_bytes()));
            }
            expect(&live.node, READS);
            let (read, _) = accept(&agent);
            expect_bytes(&read, text.as_bytes());
            let behind = live.client.later(COOKIE, 0, 0);
            let seq = live.client.get(COOKIE).seq;
            let sent = if is_first { 0 } else { live.sent as u32 };
            let behind = behind.seq(seq.wrapping_add(sent + text.len() as u32));
            forward(&live.node, &behind);
            expect(&live.node, &[("ds_forwarded", 1)]);
            is_broken(&live, &read);
            assert!(nothing_to_accept(&live.listener));
        }
    });
}

/// The same where the body is none only later, as long as nothing was answered. Who has begun to answer hears that there is no more.
#[test]
fn a_body_that_turns_out_to_be_none_is_answered_by_the_agent() {
    on_own_host(|| {
        for is_answered in [false, true] {
            let (mut live, agent) = with_agent();
            let head = request(&live, format!("{CHUNKED}1\r\nx\r\n").as_bytes());
            forward(&live.node, &head);
            expect(&live.node, LET_IN);
            expect_bytes(&live.stream, &head.payload);
            live.sent += head.payload.len();
            if is_answered {
                live.write();
                live.answers += 1;
            }
            let rest = live.ack().flags("PA").payload("nonsense");
            forward(&live.node, &rest);
            if is_answered {
                let delivered = [("ds_forwarded", 1), ("ds_door_unreadable", 1)];
                expect(&live.node, &delivered);
                assert_eq!((&live.stream).read(&mut [0; 16]).unwrap(), 0);
                assert!(nothing_to_accept(&agent));
                continue;
            }
            expect(&live.node, READS);
            ended(&live);
            let (read, _) = accept(&agent);
            expect_bytes(&read, b"nonsense");
            live.sent += rest.payload.len();
            forward(&live.node, &live.ack());
            expect(&live.node, &[("ds_forwarded", 1)]);
            is_broken(&live, &read);
        }
    });
}

/// What is before it is answered first.
#[test]
fn a_request_whose_body_is_none_waits_for_the_response_before() {
    on_own_host(|| {
        let (mut live, agent) = with_agent();
        let bad = format!("{CHUNKED}5x\r\n");
        let both = [HERE, bad.as_bytes()].concat();
        live.client = Client::fresh();
        let first = live.client.get(COOKIE).payload(both);
        send(&live.node, &adopt(&live.client), &first);
        let cut = [("ds_door_cut", 1), ("ds_door_waits", 1)];
        expect(&live.node, &[ADOPTED, &cut].concat());
        live.stream = accept(&live.listener).0;
        expect_bytes(&live.stream, HERE);
        (live.sent, live.answers) = (HERE.len(), 0);
        let rest = live.ack().flags("PA").payload(bad.as_bytes());
        forward(&live.node, &rest);
        expect(&live.node, &[("ds_door_waits", 1), ("ds_door_withheld", 1)]);
        live.write();
        live.answers = 1;
        let rest = live.ack().flags("PA").payload(bad.as_bytes());
        forward(&live.node, &rest);
        expect(&live.node, READS);
        let (read, _) = accept(&agent);
        expect_bytes(&read, bad.as_bytes());
    });
}

/// Where there is no agent, the connection server tells it.
#[test]
fn a_first_request_whose_body_is_none_is_refused() {
    on_own_host(|| {
        let mut live = owned();
        live.client = Client::fresh();
        let text = format!("{CHUNKED}5x\r\n");
        let post = live.client.get(COOKIE).payload(text);
        send(&live.node, &adopt(&live.client), &post);
        expect(&live.node, &[("ds_refused", 1), ("ds_door_unreadable", 1)]);
        let Message::Refused { tcb, .. } = live.message_to(CS, CS_MAC).message else {
            panic!("not refused");
        };
        assert_eq!(tcb.attempt, ADOPT_ATTEMPTS as u8);
        assert!(nothing_to_accept(&live.listener));
    });
}

/// The tables of data servers differ, and each passes the request on: it has come for the last time.
fn passed_on_by_all(live: &mut Live) {
    live.client = Client::fresh();
    let request = live.client.get(COOKIE).payload(ELSEWHERE);
    let Message::Adopt {
        flow,
        mut tcb,
        asker,
    } = adopt(&live.client)
    else {
        panic!("no ADOPT")
    };
    tcb.attempt = ADOPT_ATTEMPTS as u8 - 1;
    send(&live.node, &Message::Adopt { flow, tcb, asker }, &request);
}

/// Every data server that could answer it has refused it.
#[track_caller]
fn is_refused_for_all(live: &Live) {
    expect(&live.node, &[("ds_refused", 1)]);
    let Message::Refused { tcb, refusal, .. } = live.message_to(CS, CS_MAC).message else {
        panic!("not refused");
    };
    let all = ADOPT_ATTEMPTS as u8;
    assert_eq!((tcb.attempt, refusal), (all, Refusal::Unreadable));
}

#[test]
fn what_is_always_another_s_is_refused_where_no_agent_can_answer() {
    on_own_host(|| {
        let mut live = owned();
        passed_on_by_all(&mut live);
        is_refused_for_all(&live);
    });
}

#[test]
fn what_is_always_another_s_is_answered_by_the_last_one_s_agent() {
    on_own_host(|| {
        let (mut live, agent) = with_agent();
        passed_on_by_all(&mut live);
        expect(&live.node, &[READS, &[("ds_door_nobody", 1)]].concat());
        let (read, _) = accept(&agent);
        expect_bytes(&read, ELSEWHERE);
        let doors = map_named(live.node.plane(), "doors");
        // The next packet finds the door, and puts it where it belongs.
        forward(&live.node, &live.client.later(COOKIE, ELSEWHERE.len(), 0));
        expect(&live.node, &[("ds_forwarded", 1)]);
        let door = doors.lookup(&read.as_raw_fd().to_ne_bytes(), MapFlags::ANY);
        let door = Door::read_from_bytes(&door.unwrap().unwrap()).unwrap();
        assert_ne!(u32::from(door.flags) & DOOR_NOBODY, 0);
        assert!(nothing_to_accept(&live.listener));
    });
}
