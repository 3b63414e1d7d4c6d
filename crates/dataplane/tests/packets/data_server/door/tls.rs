//! ClientHellos at the door: it judges each by the packet that brings it, in an ADOPT.

use std::net::{TcpListener, TcpStream};

use baton_abi::{Door, RESPONSE_BODY, ROUTE_UNDECIDED, SERVICE_REFUSES, SERVICE_TLS};
use baton_wire::{Message, Refusal};
use libbpf_rs::{MapCore as _, MapFlags};
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::owner::{ELSEWHERE, HANDED_ON, told_moved};
use crate::{
    client_hello::{EXTENSIONS_MOST, Hello, NAME_MOST, undecided},
    data_server::agent::reader::{READS, with_agent},
    prelude::*,
    tls_routes::{self, A, NAMES, OTHERS, ROUTES, number},
};

/// The service's id, which counts as the route of connections that no route takes, and its own pool.
const REST: (u16, u16) = (0, 0);
/// A name whose connections are this data server's, and one whose connections are data server 1's.
pub const OURS: &str = "www.example.org";
pub const OTHERS_NAME: &str = "other.test";
/// Bytes of a packet of which the programs read a part.
const TEXT_MOST: usize = (1 << 14) - 8;

/// Data server 0 of a TLS service with these flags and the routes of [`tls_routes`], and the listener of its agent.
pub fn tls(flags: u32) -> (Live, TcpListener) {
    let (live, agent) = with_agent();
    tls_routes::set(&live.node, 0, None, 0);
    owns(&live.node, SERVICE_TLS | flags);
    (live, agent)
}

/// Makes another client the connection's, and returns its first packet.
pub fn begin(live: &mut Live, first: impl Into<Vec<u8>>) -> Segment {
    live.client = Client::fresh();
    (live.sent, live.answers) = (0, 0);
    live.client.ack(COOKIE).flags("PA").payload(first)
}

/// Begins a connection with this ClientHello, and asserts that it is adopted here. Returns its first packet.
#[track_caller]
pub fn begins_here(live: &mut Live, hello: &Hello) -> Segment {
    let first = begin(live, hello.whole());
    live.adopts(&first, ADOPTED);
    live.stream = accept(&live.listener).0;
    expect_bytes(&live.stream, &first.payload);
    live.sent = first.payload.len();
    first
}

/// Asserts that the connection that has just begun here took this route to this pool.
#[track_caller]
fn took(live: &Live, route_and_pool: (u16, u16), name: &str) {
    let key = live.node.tcb_key(&live.client);
    let doors = map_named(live.node.plane(), "doors_begun");
    let door = doors.lookup(key.as_bytes(), MapFlags::ANY).unwrap();
    let door = Door::read_from_bytes(&door.unwrap()).unwrap();
    assert_eq!((door.route, door.pool), route_and_pool, "{name}");
    assert_eq!(u32::from(door.body.state), RESPONSE_BODY);
}

/// Begins a connection with these bytes, and asserts that the agent gets it. Returns the agent's socket.
#[track_caller]
fn read_by_agent(live: &mut Live, agent: &TcpListener, what: &str, first: &[u8]) -> TcpStream {
    let first = begin(live, first);
    send_adopt(&live.node, &first);
    has_counted(&live.node, READS).unwrap_or_else(|error| panic!("{what}: {error}"));
    let read = accept(agent).0;
    expect_bytes(&read, &first.payload);
    assert!(nothing_to_accept(&live.listener), "{what}");
    read
}

/// Asserts that the ADOPT with this packet goes on to data server 1, and that the connection server is told.
#[track_caller]
pub fn goes_on(live: &Live, first: &Segment) {
    live.adopts(first, HANDED_ON);
    told_moved(live, first);
    let adopts = live.adopted_by_next(1);
    let Message::Adopt { flow: of, .. } = adopts.message else {
        panic!("{adopts:?}");
    };
    assert_eq!((of, adopts.packet), (flow(&live.client), first.packet()));
    assert!(nothing_to_accept(&live.listener));
}

#[test]
fn every_name() {
    let _host = own_host();
    let (mut live, agent) = tls(0);
    for (name, index) in NAMES {
        let route_and_pool = (number(*index), ROUTES[*index].1);
        if route_and_pool.1 == A {
            begins_here(&mut live, &Hello::of(name));
            took(&live, route_and_pool, name);
        } else {
            let first = begin(&mut live, Hello::of(name).whole());
            goes_on(&live, &first);
        }
    }
    for name in OTHERS {
        begins_here(&mut live, &Hello::of(name));
        took(&live, REST, name);
    }
    begins_here(&mut live, &Hello::nameless());
    took(&live, REST, "no name");
    live.nothing_sent();
    assert!(nothing_to_accept(&agent));
}

/// What comes behind an ADOPT that has gone on follows it, and the ClientHello goes there again.
#[test]
fn what_comes_for_one_that_has_gone_follows_it() {
    let _host = own_host();
    let (mut live, _agent) = tls(0);
    let first = begin(&mut live, Hello::of(OTHERS_NAME).whole());
    goes_on(&live, &first);
    let ack = live.client.later(COOKIE, first.payload.len(), 9);
    for packet in [
        ack.clone(),
        ack.clone().flags("PA").payload("more"),
        ack.flags("FA"),
    ] {
        live.forwards(&packet, &[("ds_door_followed", 1)]);
        told_moved(&live, &packet);
        assert_eq!(live.message_to(ds(1), ds_mac(1)).packet, packet.packet());
    }
    live.adopts(&first, HANDED_ON);
}

#[test]
fn the_agent_reads_what_the_packet_does_not_decide() {
    let _host = own_host();
    let (mut live, agent) = tls(0);
    for (what, first) in undecided(OURS).iter().chain(&undecided(OTHERS_NAME)) {
        read_by_agent(&mut live, &agent, what, first);
    }
}

/// Without an agent no server gets what the packet does not decide.
#[test]
fn without_an_agent_it_is_refused_for_all() {
    let _host = own_host();
    let (mut live, _agent) = tls(0);
    live.node.change(|settings| settings.reader_port = 0);
    let whole = Hello::of(OURS).whole();
    let first = begin(&mut live, &whole[..whole.len() - 1]);
    live.adopts(&first, &[("ds_door_unreadable", 1), ("ds_refused", 1)]);
    let refused = live.message_to(CS, CS_MAC);
    let Message::Refused { refusal, .. } = refused.message else {
        panic!("{refused:?}");
    };
    assert_eq!(refusal, Refusal::Unreadable);
    assert!(nothing_to_accept(&live.listener));
    begins_here(&mut live, &Hello::of(OURS));
}

#[test]
fn the_agent_reads_where_routes_have_conditions() {
    let _host = own_host();
    let (mut live, agent) = tls(0);
    tls_routes::set(&live.node, 0, Some(A), ROUTE_UNDECIDED);
    for hello in [
        Hello::of(OURS),
        Hello::of(OTHERS_NAME),
        Hello::of("x"),
        Hello::nameless(),
    ] {
        read_by_agent(&mut live, &agent, &format!("{hello:?}"), &hello.whole());
    }
    // The service's own pool may be what the conditions lead to.
    tls_routes::set(&live.node, 0, Some(u16::MAX), ROUTE_UNDECIDED);
    read_by_agent(&mut live, &agent, "no pool", &Hello::nameless().whole());
    tls_routes::set(&live.node, 0, None, ROUTE_UNDECIDED);
    begins_here(&mut live, &Hello::of("x"));
    took(&live, REST, "a name that no route has");
}

/// With the flag, the agent refuses what no route takes.
#[test]
fn the_agent_reads_what_is_to_be_refused() {
    let _host = own_host();
    let (mut live, agent) = tls(SERVICE_REFUSES);
    for name in OTHERS {
        read_by_agent(&mut live, &agent, name, &Hello::of(name).whole());
    }
    read_by_agent(&mut live, &agent, "no name", &Hello::nameless().whole());
    begins_here(&mut live, &Hello::of(OURS));
    took(&live, (number(0), A), OURS);
    let first = begin(&mut live, Hello::of(OTHERS_NAME).whole());
    goes_on(&live, &first);
    // A route that takes every name leaves nothing to refuse.
    tls_routes::set(&live.node, 0, Some(A), 0);
    for hello in [Hello::of("x"), Hello::nameless()] {
        begins_here(&mut live, &hello);
        took(&live, (number(ROUTES.len()), A), "any name");
    }
}

/// What is behind the ClientHello in its packet is let in with it, whatever it looks like.
#[test]
fn what_comes_with_a_hello_is_let_in() {
    let _host = own_host();
    let (mut live, _agent) = tls(0);
    for behind in [
        &b"\x14\x03\x03\0\x01\x01"[..],
        b"\x17\x03\x03\0\x05early",
        ELSEWHERE,
    ] {
        let first = begin(&mut live, [&Hello::of(OURS).whole(), behind].concat());
        live.adopts(&first, ADOPTED);
        expect_bytes(&accept(&live.listener).0, &first.payload);
        took(&live, (number(0), A), OURS);
        let first = begin(
            &mut live,
            [&Hello::of(OTHERS_NAME).whole(), behind].concat(),
        );
        goes_on(&live, &first);
    }
}

/// A packet may be large, or the kernel may have merged it. Of one that is longer than the text, the agent reads what
/// the text does not have.
#[test]
fn long_hellos() {
    let _host = own_host();
    let (mut live, agent) = tls(0);
    let many = Hello::of(OURS).of_so_many(EXTENSIONS_MOST);
    let name = format!("{}.other.test", "x".repeat(NAME_MOST - ".other.test".len()));
    let long = [
        many,
        Hello::of(name),
        Hello::of(OURS).of_bytes(1348),
        Hello::of(OURS).of_bytes(4000),
        Hello::of(OURS).of_bytes(TEXT_MOST),
    ];
    for hello in &long {
        begins_here(&mut live, hello);
    }
    let longer = Hello::of(OURS).of_bytes(TEXT_MOST + 1).whole();
    read_by_agent(&mut live, &agent, "too long", &longer);
    let first = begin(&mut live, [long[4].whole(), vec![b'x'; 9000]].concat());
    live.adopts(&first, ADOPTED);
    expect_bytes(&accept(&live.listener).0, &first.payload);
}
