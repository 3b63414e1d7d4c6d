//! The agent reads a request that one packet does not decide: it gets the connection, and gives it back with what it
//! has read.

use std::{
    io::ErrorKind,
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::fd::AsRawFd as _,
    thread::sleep,
    time::Duration,
};

use baton_abi::{
    DOOR_NOBODY, Door, HaveRead, POOL_NOBODY, Pool, READ_ANSWERS, READ_BYTES_MOST, READ_CHUNKED,
    RouteKey,
};
use baton_wire::Message;
use libbpf_rs::{MapCore as _, MapFlags};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::{
    data_server::door::owner::{
        ELSEWHERE, HANDED_ON, HERE, LET_IN, end_of, ended, goes_with, owned, request,
    },
    prelude::*,
};

pub const READS: Counted<'_> = &[("ds_door_reads", 1)];
const ABSENT: Counted<'_> = &[("ds_unassigned", 1)];
pub const DELIVERED: Counted<'_> = &[("ds_delivered", 1)];
pub const REPEATED: Counted<'_> = &[("ds_door_repeated", 1)];
const CHANGED: Counted<'_> = &[("ds_door_changed", 1)];
const LATER: Counted<'_> = &[("ds_door_later", 1), ("ds_door_waits", 1)];
pub const GIVEN: Counted<'_> = &[
    ("ds_adopted", 1),
    ("ds_door_read", 1),
    ("ds_door_request", 1),
];
/// Counters of a request for the agent that waits until its connection is quiet.
const WITHHELD: Counted<'_> = &[("ds_door_waits", 1), ("ds_door_withheld", 1)];
/// Index of a pool without members.
const EMPTY: u16 = 63;

/// Returns an owned connection and the listener of the agent.
pub fn with_agent() -> (Live, TcpListener) {
    let mut live = owned();
    let agent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = agent.local_addr().unwrap().port();
    live.node.change(|settings| settings.reader_port = port);
    live.has_acks = true;
    (live, agent)
}

/// Returns the request in two packets, cut before byte `at`.
pub fn cut(whole: &Segment, at: usize) -> [Segment; 2] {
    let first = whole.clone().payload(&whole.payload[..at]);
    let rest = first
        .clone()
        .seq(end_of(&first))
        .payload(&whole.payload[at..]);
    [first, rest]
}

/// Sends the request in two packets, and checks that the agent gets the connection and the whole request. Returns the
/// agent's socket.
pub fn reads(live: &Live, agent: &TcpListener, whole: &Segment) -> TcpStream {
    let [first, rest] = cut(whole, 20);
    live.forwards(&first, READS);
    ended(live);
    live.forwards(&rest, FORWARDED);
    let (read, _) = accept(agent);
    let mut bytes = vec![0; whole.payload.len()];
    while read.peek(&mut bytes).unwrap() < bytes.len() {}
    assert_eq!(bytes, whole.payload);
    read
}

/// Notes in the map `have_read`, as the agent does, that it has read the request and that the request is for this pool.
pub fn tell(live: &Live, read: &TcpStream, whole: &Segment, pool: u16) {
    read_for(live, read, whole, pool, 0);
}

/// Like [`tell`], where this route leads to the pool.
pub fn read_for(live: &Live, read: &TcpStream, whole: &Segment, pool: u16, route: u16) {
    let head = whole.payload.len() as u32;
    note_read(
        live,
        read,
        &HaveRead {
            end: end_of(whole),
            head,
            pool,
            route,
            ..HaveRead::default()
        },
    );
}

/// Notes that the agent has read all of `known`, and that the request is for this data server and has a head of so many
/// bytes.
fn tell_head(live: &Live, read: &TcpStream, known: &Segment, head: usize, flags: u32) {
    note_read(
        live,
        read,
        &HaveRead {
            end: end_of(known),
            head: head as u32,
            pool: first_pool_of_one(),
            flags: flags as u16,
            ..HaveRead::default()
        },
    );
}

/// Notes in the map `have_read` what the agent has read on this socket.
pub fn note_read(live: &Live, read: &TcpStream, known: &HaveRead) {
    let map = map_named(live.node.plane(), "have_read");
    let socket = read.as_raw_fd().to_ne_bytes();
    map.update(&socket, known.as_bytes(), MapFlags::ANY)
        .unwrap();
}

/// Sends the segment in as the agent does.
pub fn send_in(live: &Live, segment: &Segment) {
    let reading = live.node.data_server().reading(LOOPBACK).unwrap();
    reading.send(&frame_here(segment)).unwrap();
}

fn has_passed(live: &Live) -> bool {
    map_named(live.node.plane(), "passing")
        .keys()
        .next()
        .is_none()
}

/// Checks that the agent's socket was reset. The socket's error is asked for, because a read would find the data that
/// is still there.
pub fn is_reset(read: &TcpStream) {
    let error = read.take_error().unwrap().unwrap();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn what_the_agent_has_read_its_server_gets() {
    let _host = own_host();
    let (mut live, agent) = with_agent();
    let whole = request(&live, HERE);
    let read = reads(&live, &agent, &whole);
    assert!(has_passed(&live));
    tell(&live, &read, &whole, first_pool_of_one());
    send_in(&live, &whole);
    live.expect(GIVEN);
    is_reset(&read);
    assert!(!has_passed(&live));
    live.stream = accept(&live.listener).0;
    expect_bytes(&live.stream, HERE);
    // The agent sends the request once more, to see whether all of it has come.
    send_in(&live, &whole);
    live.expect(REPEATED);
    assert!(has_passed(&live));
    // The connection goes on with its server like any other.
    live.answer_another(HERE.len());
    live.forwards(&request(&live, GET), LET_IN);
    expect_bytes(&live.stream, GET);
}

/// The agent may give a request back in several frames.
#[test]
fn what_is_given_back_comes_in_order() {
    let _host = own_host();
    let (mut live, agent) = with_agent();
    let whole = request(&live, HERE);
    let read = reads(&live, &agent, &whole);
    tell(&live, &read, &whole, first_pool_of_one());
    let [first, rest] = cut(&whole, 9);
    send_in(&live, &first);
    live.expect(GIVEN);
    assert!(!has_passed(&live));
    send_in(&live, &first);
    live.expect(REPEATED);
    assert!(has_passed(&live));
    send_in(&live, &rest);
    live.expect(DELIVERED);
    send_in(&live, &rest);
    live.expect(REPEATED);
    live.stream = accept(&live.listener).0;
    expect_bytes(&live.stream, HERE);
}

#[test]
fn what_is_another_s_goes_there() {
    let _host = own_host();
    let (live, agent) = with_agent();
    let whole = request(&live, ELSEWHERE);
    // Nothing of the first packet says whose the request is.
    let [first, rest] = cut(&whole, 8);
    live.forwards(&first, READS);
    live.forwards(&rest, FORWARDED);
    let (read, _) = accept(&agent);
    tell(&live, &read, &whole, first_pool_of_one() + 1);
    send_in(&live, &whole);
    // The ADOPT's packet is the agent's frame, except that the timestamp of ours that it echoes is brought up to
    // date.
    live.expect(HANDED_ON);
    let adopts = live.adopted_by_next(1);
    assert!(adopts.packet.ends_with(ELSEWHERE));
    let told = live.message_to(CS, CS_MAC);
    assert!(matches!(told.message, Message::Moved { .. }), "{told:?}");
    is_reset(&read);
    live.nothing_sent();
    assert!(nothing_to_accept(&live.listener));
}

/// If the first packet of a head says whose the request is, the agent here need not read the rest.
#[test]
fn a_cut_head_of_another_s_goes_at_once() {
    let _host = own_host();
    let (live, agent) = with_agent();
    let [first, _] = cut(&request(&live, ELSEWHERE), ELSEWHERE.len() - 2);
    goes_with(&live, &first);
    assert!(nothing_to_accept(&agent));
}

#[test]
fn what_has_come_since_is_read_first() {
    let _host = own_host();
    let (live, agent) = with_agent();
    let whole = request(&live, HERE);
    let read = reads(&live, &agent, &whole);
    let more = whole.clone().seq(end_of(&whole)).payload(b"more");
    live.forwards(&more, FORWARDED);
    tell(&live, &read, &whole, first_pool_of_one());
    send_in(&live, &whole);
    live.expect(LATER);
    assert!(nothing_to_accept(&live.listener));
}

/// What the client sends again may say something else than what the agent has read, so the server gets only what the
/// agent sends in.
#[test]
fn what_its_client_sends_again_is_not_what_was_read() {
    let _host = own_host();
    let (live, agent) = with_agent();
    let whole = request(&live, HERE);
    let read = reads(&live, &agent, &whole);
    tell(&live, &read, &whole, first_pool_of_one());
    let other = whole.clone().payload(ELSEWHERE);
    assert_eq!(HERE.len(), ELSEWHERE.len());
    live.forwards(&other, FORWARDED);
    let [first, rest] = cut(&whole, 9);
    send_in(&live, &first);
    live.expect(GIVEN);
    let (stream, _) = accept(&live.listener);
    for packet in [&other, &rest.clone().payload(&ELSEWHERE[9..])] {
        live.forwards(packet, LATER);
    }
    send_in(&live, &rest);
    live.expect(DELIVERED);
    expect_bytes(&stream, HERE);
}

/// The door may have read more of a body, in a packet that its client sent again, than the agent has. If TCP drops that
/// packet, the agent's part counts: the client sends only what is behind it.
#[test]
fn of_a_body_the_server_gets_what_the_agent_has() {
    let _host = own_host();
    let (mut live, agent) = with_agent();
    let head: &[u8] =
        b"POST /ds1/ HTTP/1.1\r\nHost: 10.77.0.100\r\nTransfer-Encoding: chunked\r\n\r\n";
    let body: &[u8] = b"8\r\nabcdefgh\r\n0\r\n\r\n";
    let whole = request(&live, &[head, body].concat());
    let [known, last] = cut(&whole, head.len() + 6);
    let read = reads(&live, &agent, &known);
    tell_head(&live, &read, &known, head.len(), READ_CHUNKED);
    let [first, rest] = cut(&known, head.len());
    send_in(&live, &first);
    live.expect(GIVEN);
    live.stream = accept(&live.listener).0;
    let [_, again] = cut(&whole, head.len() - 4);
    forward_broken(&live.node, &again);
    live.expect(FORWARDED);
    // At first the broken packet may still be on its way to TCP.
    sleep(Duration::from_millis(150));
    send_in(&live, &rest);
    live.expect(CHANGED);
    send_in(&live, &rest);
    live.expect(DELIVERED);
    live.forwards(&last, FORWARDED);
    expect_bytes(&live.stream, &whole.payload);
}

/// If a connection ends before its server has got all that the agent has read, the client hears of it: what it sends is
/// answered by NONE, and does not wait for a socket that never comes.
#[test]
fn a_connection_that_ends_before_all_was_given_back_is_gone() {
    let _host = own_host();
    let (mut live, agent) = with_agent();
    let whole = request(&live, &[HERE, ELSEWHERE].concat());
    let [first, rest] = cut(&whole, HERE.len());
    let read = reads(&live, &agent, &whole);
    tell_head(&live, &read, &whole, HERE.len(), 0);
    send_in(&live, &first);
    live.expect(GIVEN);
    live.stream = accept(&live.listener).0;
    expect_bytes(&live.stream, HERE);
    // After a second answer to one request, nobody can say when the connection is quiet.
    live.answer_another(HERE.len());
    live.answer_another(0);
    send_in(&live, &rest);
    live.expect(&[("ds_door_stays", 1)]);
    ended(&live);
    live.forwards(&whole.clone().seq(end_of(&whole)), &[("ds_none", 1)]);
}

/// The agent gets a request that no data server can answer, and tells the client so.
#[test]
fn a_request_of_a_pool_that_nobody_is_in_is_the_agent_s() {
    for flags in [0, POOL_NOBODY as u8] {
        let _host = own_host();
        let (live, agent) = with_agent();
        let plane = live.node.plane();
        let route = RouteKey::of(0, 0, b"/nobody/").unwrap();
        plane
            .routing()
            .unwrap()
            .set_routes(&[(route, EMPTY.into())])
            .unwrap();
        let choices = u32::from(flags);
        plane
            .routing()
            .unwrap()
            .set_pool(
                EMPTY,
                &Pool {
                    flags,
                    choices,
                    ..Pool::default()
                },
            )
            .unwrap();
        let nobodys = request(&live, b"GET /nobody/a HTTP/1.1\r\nHost: a\r\n\r\n");
        live.forwards(&nobodys, READS);
        ended(&live);
        expect_bytes(&accept(&agent).0, &nobodys.payload);
    }
}

/// If the agent has read a request for a pool without members, it answers the request itself.
#[test]
fn what_is_nobody_s_stays_with_the_agent() {
    let _host = own_host();
    let (live, agent) = with_agent();
    let whole = request(&live, HERE);
    let read = reads(&live, &agent, &whole);
    tell(&live, &read, &whole, EMPTY);
    send_in(&live, &whole);
    live.expect(&[("ds_door_nobody", 1)]);
    let doors = map_named(live.node.plane(), "doors");
    let door = doors.lookup(&read.as_raw_fd().to_ne_bytes(), MapFlags::ANY);
    let door = Door::read_from_bytes(&door.unwrap().unwrap()).unwrap();
    assert_ne!(u32::from(door.flags) & DOOR_NOBODY, 0);
}

#[test]
fn the_agent_adopts_what_an_adopt_does_not_decide() {
    let _host = own_host();
    let (mut live, agent) = with_agent();
    live.client = Client::fresh();
    let whole = live.client.ack(COOKIE).flags("PA").payload(HERE);
    let [first, rest] = cut(&whole, 20);
    live.adopts(&first, READS);
    live.forwards(&rest, FORWARDED);
    // The ADOPT may come again, and is then a duplicate.
    live.adopts(&first, &[("ds_duplicate", 1)]);
    let (read, _) = accept(&agent);
    tell(&live, &read, &whole, first_pool_of_one());
    send_in(&live, &whole);
    live.expect(GIVEN);
    live.stream = accept(&live.listener).0;
    expect_bytes(&live.stream, HERE);
}

/// The agent does not get a connection before its server has answered what came before.
#[test]
fn a_connection_is_read_when_it_is_quiet() {
    let _host = own_host();
    let (live, agent) = with_agent();
    live.forwards(&request(&live, HERE), LET_IN);
    let [first, _] = cut(&request(&live, HERE), 20);
    let early = first.clone().seq(first.seq.wrapping_add(HERE.len() as u32));
    live.forwards(&early, WITHHELD);
    assert!(nothing_to_accept(&agent));
}

/// While the agent's process is killed and started again, the connection stays with its server, and nothing of it is
/// lost.
#[test]
fn without_its_agent_a_connection_stays_with_its_server() {
    let _host = own_host();
    let (live, agent) = with_agent();
    drop(agent);
    let whole = request(&live, HERE);
    let [first, _] = cut(&whole, 20);
    for _ in 0..2 {
        live.forwards(&first, ABSENT);
    }
    assert!(has_passed(&live));
    let agent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = agent.local_addr().unwrap().port();
    live.node.change(|settings| settings.reader_port = port);
    reads(&live, &agent, &whole);
}

/// While no server listens, the agent keeps a request that it has read.
#[test]
fn without_its_server_a_connection_stays_with_the_agent() {
    let _host = own_host();
    let (mut live, agent) = with_agent();
    let whole = request(&live, HERE);
    let read = reads(&live, &agent, &whole);
    tell(&live, &read, &whole, first_pool_of_one());
    live.listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    for _ in 0..2 {
        send_in(&live, &whole);
        live.expect(ABSENT);
    }
    assert!(has_passed(&live));
    live.listener = listen(WEB);
    send_in(&live, &whole);
    live.expect(GIVEN);
    live.stream = accept(&live.listener).0;
    expect_bytes(&live.stream, HERE);
}

/// What the agent's socket acknowledges must fit into the next socket's first window. The agent refuses a longer head,
/// and then gets the rest as well, so that its client hears the answer.
#[test]
fn the_agent_gets_no_more_than_another_socket_can_take() {
    let _host = own_host();
    let (live, agent) = with_agent();
    let begin = request(&live, b"GET /a HTTP/1.1\r\nX-Fill: ");
    let most = READ_BYTES_MOST as usize;
    live.forwards(&begin, READS);
    ended(&live);
    let (read, _) = accept(&agent);
    let mut next = begin.clone().seq(end_of(&begin)).payload([b'f'; 1000]);
    for _ in 0..most / 1000 - 1 {
        live.forward(&next);
        next.seq = end_of(&next);
    }
    live.expect(&[("ds_forwarded", most as u64 / 1000 - 1)]);
    // The agent has room for only a part of this packet.
    live.forwards(
        &next,
        &[
            ("ds_door_cut", 1),
            ("ds_door_waits", 1),
            ("ds_forwarded", 1),
        ],
    );
    let mut bytes = vec![0; 2 * most];
    while read.peek(&mut bytes).unwrap() < most {}
    next.seq = begin.seq.wrapping_add(READ_BYTES_MOST);
    live.forwards(&next, LATER);
    assert_eq!(read.peek(&mut bytes).unwrap(), most);
    let answers = HaveRead {
        flags: READ_ANSWERS as u16,
        ..HaveRead::default()
    };
    let map = map_named(live.node.plane(), "have_read");
    let socket = read.as_raw_fd().to_ne_bytes();
    map.update(&socket, answers.as_bytes(), MapFlags::ANY)
        .unwrap();
    live.forwards(&next, FORWARDED);
    while read.peek(&mut bytes).unwrap() < most + 1000 {}
}
