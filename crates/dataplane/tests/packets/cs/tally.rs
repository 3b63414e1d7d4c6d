//! Tallies: what a route, a pool and a data server had to do, and for how many bytes.

use std::time::Duration;

use baton_abi::{
    CLOSED_REFUSED, CLOSED_UNMOVED, CLOSED_UNREAD, DataServer, LCCP_KEEP_UNREAD, LccpHeader,
    MAX_SERVICES, Pool, ROUTE_NUMBER, ROUTE_NUMBER_SHIFT, SERVICE_HANDOVER, SERVICE_OWNER,
    SERVICE_PUNTS, SERVICE_STRICT, TALLY_KEEPS, TCB_ADOPTING, TCB_WAITING, Tally, Tcb,
};
use baton_dataplane::Tallied;
use baton_wire::{Keep, Message, Refusal, TcbPart};

use super::http::{ANSWER, Connection, get, route};
use crate::{
    cluster::{HTTP, HTTP_SERVICE, WEB, ds, first_pool_of_one, key},
    lccp::{LCCP, flow, linux_tcb, short, tag_again, to_cs},
    node::Node,
    segment::{Client, Segment},
};

/// The numbers of the routes to `/ds1/` and `/ds2/`.
const ROUTES: [u16; 2] = [MAX_SERVICES as u16, MAX_SERVICES as u16 + 1];
const POOLS: [u16; 2] = [first_pool_of_one(), first_pool_of_one() + 1];

/// `/ds1/` and `/ds2/` are one data server's each, and tallied by number.
fn prepared() -> Node {
    let node = Node::fresh_cs();
    let routes = [0, 1].map(|index| {
        let value = u32::from(ROUTES[index]) << 16 | u32::from(POOLS[index]);
        (route(0, &format!("/ds{}/", index + 1)), value)
    });
    node.plane().set_routes(&routes).unwrap();
    node
}

fn tally(node: &Node, of: Tallied) -> Tally {
    node.plane().tally(of).unwrap()
}

/// Of one of the two routes, its pool and its data server: requests and bytes.
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

/// The bytes of an answer count when the next request acknowledges them, for whoever gave it.
#[test]
fn requests_and_bytes_of_each() {
    let node = prepared();
    let mut connection = Connection::open(&node, get("/ds1/a"));
    expect(&node, 0, 1, 0);
    connection.ack += 1000;
    connection.send(&node, &connection.data(get("/ds1/b")));
    expect(&node, 0, 2, 1000);
    connection.ack += 200;
    connection.send(&node, &connection.data(get("/ds2/c")));
    expect(&node, 0, 2, 1200);
    expect(&node, 1, 1, 0);
    connection.ack += 30;
    connection.send(&node, &connection.data(get("/ds1/d")));
    expect(&node, 0, 3, 1200);
    expect(&node, 1, 1, 30);

    let [first, second] = [0, 1].map(|index| tally(&node, Tallied::DataServer(index)));
    assert_eq!((first.connections, second.connections), (2, 1));
    assert_eq!((first.handovers, second.handovers), (1, 1), "who was asked");
    let [first, second] = ROUTES.map(|number| tally(&node, Tallied::Route(number)));
    assert_eq!((first.handovers, second.handovers), (1, 1), "for whom");
}

/// What no route takes is tallied by the service's id, and for its own pool.
#[test]
fn the_rest_of_a_service() {
    let node = prepared();
    let mut connection = Connection::open(&node, get("/other"));
    connection.ack += 70;
    connection.send(&node, &connection.data(get("/ds1/")));
    let pool = connection.entry(&node).pool;
    assert_eq!(pool, POOLS[0]);
    for of in [Tallied::Route(HTTP_SERVICE), Tallied::Pool(HTTP_SERVICE)] {
        let found = tally(&node, of);
        assert_eq!((found.requests, found.bytes), (1, 70), "{of:?}");
    }
    // A service without routes: a connection is all that is known.
    let client = Client::of(WEB);
    let cookie = node.cookie(&client);
    node.run(&client.get(cookie).frame());
    assert_eq!(tally(&node, Tallied::Route(0)).requests, 1);
    assert_eq!(tally(&node, Tallied::Pool(0)).requests, 1);
}

/// What is sent again, acknowledged in between, or only forwarded, is no request.
#[test]
fn nothing_else_is_a_request() {
    let node = prepared();
    let (connection, request) = {
        let mut connection = Connection::open(&node, get("/ds1/"));
        connection.ack += ANSWER;
        let request = connection.data(get("/ds2/"));
        connection.send(&node, &request);
        (connection, request)
    };
    node.run(&request.frame());
    node.run(&connection.empty().frame());
    let ack = Segment {
        ack: connection.ack + 10,
        ..connection.empty()
    };
    node.run(&ack.frame());
    node.run(&ack.frame());
    expect(&node, 0, 1, u64::from(ANSWER));
    expect(&node, 1, 1, 0);
}

/// FIN and RST end what is counted for; a later acknowledgement still counts.
#[test]
fn the_last_answer_counts_at_the_end() {
    for flags in ["FA", "R", "RA"] {
        let node = prepared();
        let mut connection = Connection::open(&node, get("/ds1/"));
        connection.ack += 500;
        node.run(&connection.empty().frame());
        expect(&node, 0, 1, 0);
        node.run(&connection.empty().flags(flags).frame());
        expect(&node, 0, 1, 500);
        node.run(&connection.empty().flags(flags).frame());
        expect(&node, 0, 1, 500);
    }
}

/// One response of more than 32 bits can say, as acknowledgements tell of it bit by bit.
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

/// One acknowledgement of much that came fast is as far away as a jump, and an answer all the same.
#[test]
fn a_large_step_is_an_answer() {
    for step in [(1 << 20) + 1, 8 << 20, (1 << 30) - 1] {
        let node = prepared();
        let mut connection = Connection::open(&node, get("/ds1/"));
        connection.ack = connection.ack.wrapping_add(step);
        node.run(&connection.empty().frame());
        expect(&node, 0, 1, step.into());
        // From elsewhere in what the client sends it is none.
        connection.seq = connection.seq.wrapping_add(1 << 20);
        connection.ack = connection.ack.wrapping_add(step);
        node.run(&connection.empty().frame());
        node.run(&connection.empty().flags("FA").frame());
        expect(&node, 0, 1, step.into());
    }
}

/// A late packet is a jump back, and the next one a jump to where the connection is.
#[test]
fn nothing_counts_twice() {
    let node = prepared();
    let mut connection = Connection::open(&node, get("/ds1/"));
    let late = connection.empty();
    connection.ack += 2 << 20;
    for _ in 0..3 {
        node.run(&connection.empty().frame());
        node.run(&late.frame());
    }
    connection.ack += 10;
    node.run(&connection.empty().flags("FA").frame());
    node.run(&connection.empty().flags("FA").frame());
    expect(&node, 0, 1, (2 << 20) + 10);
}

/// What is too far ahead to be an acknowledgement is not believed, and counts for nobody.
#[test]
fn a_jump_is_no_answer() {
    let node = prepared();
    let mut connection = Connection::open(&node, get("/ds1/"));
    connection.ack += 300;
    node.run(&connection.empty().frame());
    let mut far = connection;
    far.ack = far.ack.wrapping_add(1 << 30);
    node.run(&far.empty().frame());
    node.run(&far.empty().flags("FA").frame());
    expect(&node, 0, 1, 0);
    connection.ack += 40;
    node.run(&connection.empty().flags("FA").frame());
    expect(&node, 0, 1, 340);
}

/// The sweep counts what a quiet connection has had, once.
#[test]
fn a_sweep_counts_what_is_quiet() {
    const LONG: Duration = Duration::from_secs(3600);
    let node = prepared();
    let mut connection = Connection::open(&node, get("/ds1/"));
    connection.ack += 900;
    node.run(&connection.empty().frame());
    node.plane().sweep(LONG, LONG).unwrap();
    expect(&node, 0, 1, 0);
    let age = |ticks: u32| {
        let entry = connection.entry(&node);
        let old = Tcb {
            seen: entry.seen.wrapping_sub(ticks),
            ..entry
        };
        let key = node.tcb_key(&connection.client);
        node.plane().set_tcb(&key, &old).unwrap();
    };
    age(3);
    node.plane().sweep(LONG, LONG).unwrap();
    node.plane().sweep(LONG, LONG).unwrap();
    expect(&node, 0, 1, 900);
    age(1_000_000);
    assert_eq!(node.plane().sweep(LONG, LONG).unwrap().expired, 1);
    expect(&node, 0, 1, 900);
}

/// The owner refuses: why, and the request is its own.
#[test]
fn a_handover_that_is_kept() {
    for (number, keep) in [
        (0, Keep::Other),
        (1, Keep::State),
        (2, Keep::Unsent),
        (3, Keep::Unread),
        (4, Keep::Sequence),
        (5, Keep::NoWay),
    ] {
        let node = prepared();
        let (connection, request) = handed_over(&node);
        let message = Message::Keep {
            flow: flow(&connection.client),
            tcb: linux_tcb(),
            keep,
        };
        answer(&node, 0, &message, &request);
        for of in [
            Tallied::Route(ROUTES[1]),
            Tallied::Pool(POOLS[1]),
            Tallied::DataServer(0),
        ] {
            let found = tally(&node, of);
            let mut kept = [0; TALLY_KEEPS as usize];
            kept[number] = 1;
            assert_eq!((found.handovers, found.kept), (1, kept), "{of:?}");
        }
        assert_eq!(requests_of(&node), [2, 0]);
        assert_eq!(
            tally(&node, Tallied::DataServer(1)).kept,
            [0; TALLY_KEEPS as usize]
        );
    }
}

/// A reason of another version counts within its tally, whatever it is.
#[test]
fn a_reason_out_of_range() {
    let node = prepared();
    let (connection, request) = handed_over(&node);
    let mut message = to_cs(
        0,
        &Message::Keep {
            flow: flow(&connection.client),
            tcb: linux_tcb(),
            keep: Keep::Unread,
        },
        node.now(),
        &key().lccp(),
        &request.packet(),
    );
    reason(&mut message, u32::MAX);
    node.run(&message);
    let found = tally(&node, Tallied::Route(ROUTES[1]));
    assert_eq!(found.kept.iter().sum::<u64>(), 1);
    assert_eq!(found.kept[LCCP_KEEP_UNREAD as usize], 0);
}

/// The next one has it not: the handover was none.
#[test]
fn a_handover_that_was_not_made() {
    let node = prepared();
    let (connection, request) = handed_over(&node);
    let message = |attempt| Message::None {
        flow: flow(&connection.client),
        attempt,
        is_plain: false,
    };
    answer(&node, 1, &message(0), &request);
    let found = tally(&node, Tallied::Route(ROUTES[1]));
    assert_eq!((found.handovers, found.none), (1, 1));
    assert_eq!(tally(&node, Tallied::DataServer(0)).none, 1);
    assert_eq!(requests_of(&node), [2, 0]);
    // Nor has the one before: back again, and no second handover.
    answer(&node, 0, &message(1), &request);
    assert_eq!(tally(&node, Tallied::Route(ROUTES[1])).none, 1);
    assert_eq!(requests_of(&node), [1, 1]);
}

/// REFUSED: the request goes on to another data server, and is that one's.
#[test]
fn a_request_that_is_refused() {
    let node = prepared();
    let connection = Connection::open(&node, get("/anybody"));
    let owner = connection.entry(&node).owner;
    let refused = Message::Refused {
        flow: flow(&connection.client),
        tcb: linux_tcb(),
        refusal: Refusal::NoListener,
    };
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

/// What owners see to they count. Here only who is given connections counts, and what no owner will see.
#[test]
fn what_owners_count() {
    let node = prepared();
    node.change_flags(|flags| (flags | SERVICE_OWNER) & !SERVICE_HANDOVER);
    let connections = || [0, 1].map(|server| tally(&node, Tallied::DataServer(server)).connections);
    let mut connection = Connection::open_any(&node, get("/ds1/"));
    assert_eq!(connections(), [1, 0]);
    connection.ack += 2 << 20;
    connection.send(&node, &connection.data(get("/ds2/")));
    let moved = Message::Moved {
        flow: flow(&connection.client),
        tcb: linux_tcb(),
        next: Some(short(ds(1))),
    };
    answer(&node, 0, &moved, &connection.data(get("/ds2/")));
    assert_eq!(connection.entry(&node).owner, 1);
    assert_eq!(connections(), [1, 1]);
    connection.ack += 500;
    node.run(&connection.empty().flags("FA").frame());
    for index in [0, 1] {
        expect(&node, index, 0, 0);
        assert_eq!(tally(&node, Tallied::Route(ROUTES[index])).handovers, 0);
    }

    let connection = Connection::open_any(&node, get("/anybody"));
    let owner = connection.entry(&node).owner;
    let refused = |attempt| Message::Refused {
        flow: flow(&connection.client),
        tcb: TcbPart {
            attempt,
            ..linux_tcb()
        },
        refusal: Refusal::Unreadable,
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

    node.plane().set_pool(POOLS[1], &Pool::default()).unwrap();
    let client = Client::of(HTTP);
    let cookie = node.cookie(&client);
    node.run(&client.get(cookie).payload(get("/ds2/")).frame());
    for of in [Tallied::Route(ROUTES[1]), Tallied::Pool(POOLS[1])] {
        let found = tally(&node, of);
        assert_eq!((found.requests, found.unavailable), (1, 1), "{of:?}");
    }
}

/// Nobody in the pool: a request all the same, and one that nobody answered.
#[test]
fn nobody_to_answer() {
    let node = prepared();
    let mut connection = Connection::open(&node, get("/ds1/"));
    connection.ack += 60;
    node.plane().set_pool(POOLS[1], &Pool::default()).unwrap();
    connection.send(&node, &connection.data(get("/ds2/")));
    assert!(node.tcb(&connection.client).is_none());
    expect(&node, 0, 1, 60);
    node.plane()
        .set_data_server(0, &DataServer::default())
        .unwrap();
    let client = Client::of(super::super::cluster::HTTP);
    let cookie = node.cookie(&client);
    node.run(&client.get(cookie).payload(get("/ds1/")).frame());
    for (index, requests) in [(0, 2), (1, 1)] {
        for of in [Tallied::Route(ROUTES[index]), Tallied::Pool(POOLS[index])] {
            let found = tally(&node, of);
            let seen = (found.requests, found.unavailable);
            assert_eq!(seen, (requests, 1), "{of:?}");
        }
    }
}

/// A number that is another's from now on begins at nothing.
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

/// A new connection on the ports of an old one: what that had is counted, and it begins at nothing.
#[test]
fn the_port_is_used_again() {
    let node = prepared();
    let mut connection = Connection::open(&node, get("/ds1/"));
    connection.ack += 800;
    node.run(&connection.empty().frame());
    let new = connection.client.again();
    let cookie = node.cookie(&new);
    node.run(&new.get(cookie).payload(get("/ds2/")).frame());
    expect(&node, 0, 1, 800);
    expect(&node, 1, 1, 0);
}

/// Why a request ended its connection: for its own route where that is known, else for that of the request before it, and
/// of a first request for what no route takes.
#[test]
fn what_ended_its_connection() {
    let node = prepared();
    node.change_flags(|flags| (flags | SERVICE_STRICT | SERVICE_PUNTS) & !SERVICE_HANDOVER);
    let punts = node.plane().punts().unwrap();
    punts.give_sign(Duration::from_secs(3600)).unwrap();
    let closed = |of, why: u32| tally(&node, of).closed[why as usize];
    let mut connection = Connection::open(&node, get("/ds1/"));
    connection.ack += ANSWER;
    connection.send(&node, &connection.data(get("/ds2/")));
    for (index, expected) in [(0, 0), (1, 1)] {
        for of in [Tallied::Route(ROUTES[index]), Tallied::Pool(POOLS[index])] {
            assert_eq!(closed(of, CLOSED_UNMOVED), expected, "{of:?}");
        }
    }

    let mut connection = Connection::open(&node, get("/ds1/"));
    connection.ack += ANSWER;
    connection.send(&node, &connection.data("\x16\x03\x01 no HTTP\r\n\r\n"));
    let client = Client::of(HTTP);
    let first = client
        .get(node.cookie(&client))
        .payload("GET /%00 HTTP/1.1\r\n\r\n");
    node.run(&first.frame());
    for punt in punts.wait(Duration::ZERO).unwrap() {
        punts.refuse(&punt).unwrap();
    }
    for of in [Tallied::Route(ROUTES[0]), Tallied::Pool(POOLS[0])] {
        assert_eq!(
            (closed(of, CLOSED_UNREAD), closed(of, CLOSED_REFUSED)),
            (1, 0),
            "{of:?}"
        );
    }
    let rest = Tallied::Route(HTTP_SERVICE);
    assert_eq!(
        (closed(rest, CLOSED_UNREAD), closed(rest, CLOSED_REFUSED)),
        (0, 1)
    );
}

/// Indices that are none harm nothing.
#[test]
fn a_route_out_of_range() {
    let node = prepared();
    let value = ROUTE_NUMBER << ROUTE_NUMBER_SHIFT | u32::from(POOLS[0]);
    node.plane()
        .set_routes(&[(route(0, "/ds1/"), value)])
        .unwrap();
    let connection = Connection::open(&node, get("/ds1/"));
    assert_eq!(connection.entry(&node).pool, POOLS[0]);
    assert_eq!(tally(&node, Tallied::Pool(POOLS[0])).requests, 1);
}

/// A connection that the first data server has answered, asked to be let go to the second.
fn handed_over(node: &Node) -> (Connection, Segment) {
    let mut connection = Connection::open(node, get("/ds1/"));
    connection.ack += ANSWER;
    let request = connection.data(get("/ds2/"));
    connection.send(node, &request);
    let state = connection.entry(node).state;
    assert_eq!(u32::from(state), TCB_ADOPTING | TCB_WAITING);
    (connection, request)
}

fn answer(node: &Node, from: u16, message: &Message, packet: &Segment) {
    let frame = to_cs(from, message, node.now(), &key().lccp(), &packet.packet());
    node.run(&frame);
}

/// Another reason in a KEEP, tagged again.
fn reason(frame: &mut [u8], why: u32) {
    let data = LCCP + std::mem::offset_of!(LccpHeader, be_data);
    frame[data..data + 4].copy_from_slice(&why.to_be_bytes());
    tag_again(frame, &key().lccp());
}

/// What the two data servers have to answer, less what was taken back.
fn requests_of(node: &Node) -> [u64; 2] {
    [0, 1].map(|server| {
        let tally = tally(node, Tallied::DataServer(server));
        tally.requests - tally.taken_back
    })
}
