//! Tallies: how many requests and bytes a route, a pool and a data server had.

use std::time::Duration;

use baton_abi::{
    DataServer, MAX_SERVICES, Pool, ROUTE_NUMBER, ROUTE_NUMBER_SHIFT, SERVICE_OWNER, Tally, Tcb,
};
use baton_dataplane::Tallied;
use baton_wire::{Message, Refusal, TcbPart};

use crate::{
    connection_server::http::{Connection, get, route},
    prelude::*,
};

/// The numbers of the routes to `/ds1/` and `/ds2/`.
const ROUTES: [u16; 2] = [MAX_SERVICES as u16, MAX_SERVICES as u16 + 1];
const POOLS: [u16; 2] = [first_pool_of_one(), first_pool_of_one() + 1];

/// A node that routes `/ds1/` and `/ds2/` to one data server each, under route numbers. The connection server tallies
/// them, because the service has no door.
fn prepared() -> Node {
    let node = Node::fresh_cs();
    let routes = [0, 1].map(|index| {
        let value = u32::from(ROUTES[index]) << 16 | u32::from(POOLS[index]);
        (route(0, &format!("/ds{}/", index + 1)), value)
    });
    node.routing().set_routes(&routes).unwrap();
    node.change_flags(|flags| flags & !SERVICE_OWNER);
    node
}

fn tally(node: &Node, of: Tallied) -> Tally {
    node.routing().tally(of).unwrap()
}

/// Checks the requests and bytes of one of the two routes, of its pool and of its data server.
#[track_caller]
fn expect(node: &Node, index: usize, requests: u64, bytes: u64) {
    for of in [
        Tallied::Route(ROUTES[index]),
        Tallied::Pool(POOLS[index]),
        Tallied::DataServer(index as u16),
    ] {
        let found = tally(node, of);
        assert_eq!((found.requests, found.bytes), (requests, bytes), "{of:?}");
    }
}

/// For a service without a door, the connection server counts the first request, and the bytes of all its responses.
#[test]
fn what_no_door_counts() {
    let node = Node::fresh_cs();
    let client = Client::of(WEB);
    let cookie = node.cookie(&client);
    node.run(&client.get(cookie).frame());
    for of in [Tallied::Route(0), Tallied::Pool(0)] {
        assert_eq!(tally(&node, of).requests, 1, "{of:?}");
    }
    let owner = Tallied::DataServer(node.tcb(&client).unwrap().owner);
    assert_eq!(
        (
            tally(&node, owner).requests,
            tally(&node, owner).connections
        ),
        (1, 1)
    );
    let last = client.later(cookie, 0, 500).flags("FA");
    node.run(&last.frame());
    for of in [Tallied::Route(0), Tallied::Pool(0), owner] {
        assert_eq!(tally(&node, of).bytes, 500, "{of:?}");
    }
}

/// A FIN or RST has the bytes counted. An acknowledgement that comes later still counts.
#[test]
fn the_last_answer_counts_at_the_end() {
    for flags in ["FA", "R", "RA"] {
        let node = prepared();
        let mut connection = Connection::open(&node, get("/ds1/"));
        connection.ack = connection.ack.wrapping_add(500);
        node.run(&connection.empty().frame());
        expect(&node, 0, 1, 0);
        node.run(&connection.empty().flags(flags).frame());
        expect(&node, 0, 1, 500);
        node.run(&connection.empty().flags(flags).frame());
        expect(&node, 0, 1, 500);
    }
}

/// A response of more bytes than 32 bits can count is counted from many acknowledgements.
#[test]
fn a_download_of_more_than_4_gib() {
    let node = prepared();
    let mut connection = Connection::open(&node, get("/ds1/"));
    let step = 1_000_000;
    let steps = 5_000;
    for _ in 0..steps {
        connection.ack = connection.ack.wrapping_add(step);
        node.run(&connection.empty().frame());
    }
    node.run(&connection.empty().flags("FA").frame());
    expect(&node, 0, 1, u64::from(step) * steps);
}

/// An acknowledgement of much that came fast is as far away as a jump, and still counts as a response.
#[test]
fn a_large_step_is_an_answer() {
    for step in [(1 << 20) + 1, 8 << 20, (1 << 30) - 1] {
        let node = prepared();
        let mut connection = Connection::open(&node, get("/ds1/"));
        connection.ack = connection.ack.wrapping_add(step);
        node.run(&connection.empty().frame());
        expect(&node, 0, 1, step.into());
        // An acknowledgement with another sequence number does not count.
        connection.seq = connection.seq.wrapping_add(1 << 20);
        connection.ack = connection.ack.wrapping_add(step);
        node.run(&connection.empty().frame());
        node.run(&connection.empty().flags("FA").frame());
        expect(&node, 0, 1, step.into());
    }
}

/// A late packet is a jump back, and the packet after it jumps to where the connection is: neither counts again.
#[test]
fn nothing_counts_twice() {
    let node = prepared();
    let mut connection = Connection::open(&node, get("/ds1/"));
    let late = connection.empty();
    connection.ack = connection.ack.wrapping_add(2 << 20);
    for _ in 0..3 {
        node.run(&connection.empty().frame());
        node.run(&late.frame());
    }
    connection.ack = connection.ack.wrapping_add(10);
    node.run(&connection.empty().flags("FA").frame());
    node.run(&connection.empty().flags("FA").frame());
    expect(&node, 0, 1, (2 << 20) + 10);
}

/// An acknowledgement number that is too far ahead is not believed, and its bytes are counted for nobody.
#[test]
fn a_jump_is_no_answer() {
    let node = prepared();
    let mut connection = Connection::open(&node, get("/ds1/"));
    connection.ack = connection.ack.wrapping_add(300);
    node.run(&connection.empty().frame());
    let mut far = connection;
    far.ack = far.ack.wrapping_add(1 << 30);
    node.run(&far.empty().frame());
    node.run(&far.empty().flags("FA").frame());
    expect(&node, 0, 1, 0);
    connection.ack = connection.ack.wrapping_add(40);
    node.run(&connection.empty().flags("FA").frame());
    expect(&node, 0, 1, 340);
}

/// The sweep counts the bytes of a quiet connection, once.
#[test]
fn a_sweep_counts_what_is_quiet() {
    const LONG: Duration = Duration::from_secs(3600);
    let node = prepared();
    let mut connection = Connection::open(&node, get("/ds1/"));
    connection.ack = connection.ack.wrapping_add(900);
    node.run(&connection.empty().frame());
    node.connection_server().sweep(LONG, LONG).unwrap();
    expect(&node, 0, 1, 0);
    let age = |ticks: u32| {
        let entry = connection.entry(&node);
        let old = Tcb {
            seen: entry.seen.wrapping_sub(ticks),
            ..entry
        };
        let key = node.tcb_key(&connection.client);
        node.connection_server().set_tcb(&key, &old).unwrap();
    };
    age(3);
    node.connection_server().sweep(LONG, LONG).unwrap();
    node.connection_server().sweep(LONG, LONG).unwrap();
    expect(&node, 0, 1, 900);
    age(1_000_000);
    assert_eq!(
        node.connection_server().sweep(LONG, LONG).unwrap().expired,
        1
    );
    expect(&node, 0, 1, 900);
}

/// REFUSED: the request goes on to another data server and is counted for that one.
#[test]
fn a_request_that_is_refused() {
    let node = prepared();
    let connection = Connection::open(&node, get("/anybody"));
    let owner = connection.entry(&node).owner;
    let refused = refused(&connection.client, linux_tcb(), Refusal::NoListener);
    let request = connection.data("x");
    answer(&node, owner, &refused, &request);
    let next = connection.entry(&node).owner;
    assert_ne!(next, owner);
    let net = |server| {
        let tally = tally(&node, Tallied::DataServer(server));
        tally.requests - tally.taken_back
    };
    assert_eq!((net(owner), net(next)), (0, 1));
    assert_eq!(tally(&node, Tallied::Route(HTTP_SERVICE)).requests, 1);
}

/// Owners count the requests that they judge. The connection server then counts only the connections that each data
/// server is given, and the requests that no owner will see.
#[test]
fn what_owners_count() {
    let node = prepared();
    node.change_flags(|flags| flags | SERVICE_OWNER);
    let connections = || [0, 1].map(|server| tally(&node, Tallied::DataServer(server)).connections);
    let mut connection = Connection::open(&node, get("/ds1/"));
    assert_eq!(connections(), [1, 0]);
    connection.ack = connection.ack.wrapping_add(2 << 20);
    connection.send(&node, &connection.data(get("/ds2/")));
    let moved = Message::Moved {
        flow: flow(&connection.client),
        tcb: linux_tcb(),
        next: Some(short(ds(1))),
        is_cut: false,
    };
    answer(&node, 0, &moved, &connection.data(get("/ds2/")));
    assert_eq!(connection.entry(&node).owner, 1);
    assert_eq!(connections(), [1, 1]);
    connection.ack = connection.ack.wrapping_add(500);
    node.run(&connection.empty().flags("FA").frame());
    for index in [0, 1] {
        expect(&node, index, 0, 0);
    }

    let connection = Connection::open(&node, get("/anybody"));
    let owner = connection.entry(&node).owner;
    let refused = |attempt| {
        refused(
            &connection.client,
            TcbPart {
                attempt,
                ..linux_tcb()
            },
            Refusal::Unreadable,
        )
    };
    let first = connection.data("x");
    answer(&node, owner, &refused(0), &first);
    let next = connection.entry(&node).owner;
    answer(&node, next, &refused(8), &first);
    for server in [owner, next] {
        let found = tally(&node, Tallied::DataServer(server));
        assert_eq!((found.requests, found.taken_back), (0, 0));
    }
    let rest = tally(&node, Tallied::Route(HTTP_SERVICE));
    assert_eq!((rest.requests, rest.unavailable), (1, 1), "by all");

    node.routing().set_pool(POOLS[1], &Pool::default()).unwrap();
    let client = Client::of(HTTP);
    let cookie = node.cookie(&client);
    node.run(&client.get(cookie).payload(get("/ds2/")).frame());
    for of in [Tallied::Route(ROUTES[1]), Tallied::Pool(POOLS[1])] {
        let found = tally(&node, of);
        assert_eq!((found.requests, found.unavailable), (1, 1), "{of:?}");
    }
}

/// A request that no data server can answer counts as a request, and as unavailable.
#[test]
fn nobody_to_answer() {
    let node = prepared();
    node.plane()
        .set_data_server(0, &DataServer::default())
        .unwrap();
    let client = Client::of(HTTP);
    let cookie = node.cookie(&client);
    node.run(&client.get(cookie).payload(get("/ds1/")).frame());
    assert!(node.tcb(&client).is_none());
    for of in [Tallied::Route(ROUTES[0]), Tallied::Pool(POOLS[0])] {
        let found = tally(&node, of);
        assert_eq!((found.requests, found.unavailable), (1, 1), "{of:?}");
    }
}

/// A route number that gets another meaning begins with an empty tally.
#[test]
fn a_cleared_tally() {
    let node = prepared();
    Connection::open(&node, get("/ds1/"));
    let of = Tallied::Route(ROUTES[0]);
    assert_eq!(tally(&node, of).requests, 1);
    node.plane().clear_tally(of).unwrap();
    assert_eq!(tally(&node, of), Tally::default());
    assert_eq!(tally(&node, Tallied::Pool(POOLS[0])).requests, 1);
}

/// A new connection begins on the ports of an old one. The old one's bytes are counted, and the new one begins at
/// zero.
#[test]
fn the_port_is_used_again() {
    let node = prepared();
    let mut connection = Connection::open(&node, get("/ds1/"));
    connection.ack = connection.ack.wrapping_add(800);
    node.run(&connection.empty().frame());
    let new = connection.client.again();
    let cookie = node.cookie(&new);
    node.run(&new.get(cookie).payload(get("/ds2/")).frame());
    expect(&node, 0, 1, 800);
    expect(&node, 1, 1, 0);
}

/// A route number that is out of range does no harm.
#[test]
fn a_route_out_of_range() {
    let node = prepared();
    let value = ROUTE_NUMBER << ROUTE_NUMBER_SHIFT | u32::from(POOLS[0]);
    node.routing()
        .set_routes(&[(route(0, "/ds1/"), value)])
        .unwrap();
    let connection = Connection::open(&node, get("/ds1/"));
    assert_eq!(connection.entry(&node).pool, POOLS[0]);
    assert_eq!(tally(&node, Tallied::Pool(POOLS[0])).requests, 1);
}

fn answer(node: &Node, from: u16, message: &Message, packet: &Segment) {
    let frame = node.said_by(from, message, packet);
    node.run(&frame);
}
