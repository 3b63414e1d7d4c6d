//! What a data server's doors count for its connection servers, which forward and count nothing.

use std::{
    net::Shutdown,
    os::fd::AsRawFd as _,
    thread,
    time::{Duration, Instant},
};

use baton_abi::{Door, DoorTally, MAX_SERVICES, RouteKey};
use baton_dataplane::{AtDoor, Tallied};
use libbpf_rs::{MapCore as _, MapFlags};
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::owner::{ELSEWHERE, HERE, LET_IN, goes_with, owned, request, serves};
use crate::{
    data_server::agent::reader::{GIVEN, read_for, reads, send_in, with_agent},
    prelude::*,
};

/// The numbers of the routes to `/ds1/` and `/ds2/`.
const ROUTES: [u16; 2] = [MAX_SERVICES as u16 + 5, MAX_SERVICES as u16 + 6];
const POOLS: [u16; 2] = [first_pool_of_one(), first_pool_of_one() + 1];
/// The route and pool of requests that neither route takes: the service's id counts as the route, and the pool is the
/// service's own.
const REST: (u16, u16) = (0, 0);
/// The bytes of one response of the server.
const ONE: u64 = ANSWER.len() as u64;

/// Gives numbers to the routes of the connection's service.
fn numbered(live: &Live) {
    let routes = [0, 1].map(|index| {
        let path = format!("/ds{}/", index + 1);
        let value = u32::from(ROUTES[index]) << 16 | u32::from(POOLS[index]);
        (RouteKey::of(0, 0, path.as_bytes()).unwrap(), value)
    });
    live.node.routing().set_routes(&routes).unwrap();
}

fn counts(node: &Node, of: AtDoor) -> [u64; 4] {
    let tally = node.data_server().door_tally(of).unwrap();
    let DoorTally {
        requests,
        bytes,
        handovers,
        unavailable,
    } = tally;
    [requests, bytes, handovers, unavailable]
}

/// Asserts that a route and its pool each have these counts: requests, bytes, handovers, and requests that no data
/// server could answer.
#[track_caller]
fn counted(node: &Node, (route, pool): (u16, u16), expected: [u64; 4]) {
    for of in [AtDoor::Route(route), AtDoor::Pool(pool)] {
        // The program may be at work on another processor.
        let until = Instant::now() + Duration::from_secs(5);
        while counts(node, of) != expected && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(counts(node, of), expected, "{of:?}");
    }
}

fn of_route(index: usize) -> (u16, u16) {
    (ROUTES[index], POOLS[index])
}

/// Each request counts once for its route and its pool, with the bytes that were acknowledged until the next request.
/// All of them together count for the data server.
#[test]
fn requests_and_bytes_of_each() {
    let _host = own_host();
    let mut live = owned();
    numbered(&live);
    counted(&live.node, REST, [1, 0, 0, 0]);
    serves(&mut live, HERE);
    counted(&live.node, REST, [1, ONE, 0, 0]);
    counted(&live.node, of_route(0), [1, 0, 0, 0]);
    serves(&mut live, HERE);
    counted(&live.node, of_route(0), [2, ONE, 0, 0]);
    let with = request(&live, ELSEWHERE);
    goes_with(&live, &with);
    counted(&live.node, of_route(0), [2, 2 * ONE, 0, 0]);
    counted(&live.node, of_route(1), [0, 0, 1, 0]);
    assert_eq!(counts(&live.node, AtDoor::All), [3, 3 * ONE, 1, 0]);
    // A request that comes again after its connection has gone with it does not count again.
    live.forwards(&with, &[("ds_door_again", 1)]);
    counted(&live.node, of_route(1), [0, 0, 1, 0]);
}

/// A request that comes again counts once, whether it comes as ADOPT or in FORWARD.
#[test]
fn what_comes_again_counts_once() {
    let _host = own_host();
    let live = owned();
    numbered(&live);
    live.adopts(&live.client.get(COOKIE), &[("ds_duplicate", 1)]);
    counted(&live.node, REST, [1, 0, 0, 0]);
    let again = request(&live, HERE);
    live.forwards(&again, LET_IN);
    for _ in 0..2 {
        live.forwards(&again, FORWARDED);
    }
    counted(&live.node, of_route(0), [1, 0, 0, 0]);
}

/// If a connection server has guessed the wrong data server, the ADOPT counts there as one handover, even if it comes
/// twice. The request counts at the data server to which it goes.
#[test]
fn an_adopt_that_goes_on_is_a_handover() {
    let _host = own_host();
    let live = owned();
    numbered(&live);
    let first = Client::fresh().ack(COOKIE).flags("PA").payload(ELSEWHERE);
    for _ in 0..2 {
        live.adopts(&first, &[("ds_door_handed_on", 1)]);
        counted(&live.node, of_route(1), [0, 0, 1, 0]);
    }
}

/// A request that the agent has read counts when its server gets it, for the route that the agent found.
#[test]
fn what_the_agent_has_read() {
    let _host = own_host();
    let (mut live, agent) = with_agent();
    numbered(&live);
    let whole = request(&live, HERE);
    let read = reads(&live, &agent, &whole);
    counted(&live.node, REST, [1, ONE, 0, 0]);
    counted(&live.node, of_route(0), [0, 0, 0, 0]);
    read_for(&live, &read, &whole, POOLS[0], ROUTES[0]);
    send_in(&live, &whole);
    live.expect(GIVEN);
    counted(&live.node, of_route(0), [1, 0, 0, 0]);
    live.stream = accept(&live.listener).0;
    live.answer_another(HERE.len());
    live.forwards(&request(&live, GET), LET_IN);
    counted(&live.node, of_route(0), [1, ONE, 0, 0]);
    counted(&live.node, REST, [2, ONE, 0, 0]);
}

/// A request for a pool without data servers counts once as such. The agent answers it, and the bytes of that answer
/// count for nobody.
#[test]
fn what_nobody_is_there_for() {
    const EMPTY: (u16, u16) = (ROUTES[1], 63);
    let _host = own_host();
    let (live, agent) = with_agent();
    numbered(&live);
    let whole = request(&live, HERE);
    let read = reads(&live, &agent, &whole);
    read_for(&live, &read, &whole, EMPTY.1, EMPTY.0);
    for _ in 0..2 {
        send_in(&live, &whole);
        live.expect(&[("ds_door_nobody", 1)]);
        counted(&live.node, EMPTY, [1, 0, 0, 1]);
    }
}

/// The last response counts when the client closes, or when it acknowledges that the server has closed: the server's
/// FIN counts as one byte more.
#[test]
fn the_last_answer_counts_at_the_end() {
    let _host = own_host();
    for flags in ["FA", "RA", "R"] {
        let live = owned();
        counted(&live.node, REST, [1, 0, 0, 0]);
        live.forwards(&live.ack().flags(flags), FORWARDED);
        counted(&live.node, REST, [1, ONE, 0, 0]);
    }
    let live = owned();
    live.stream.shutdown(Shutdown::Write).unwrap();
    let ack = live.ack();
    let last = Segment {
        ack: ack.ack.wrapping_add(1),
        ..ack
    };
    live.forwards(&last, FORWARDED);
    counted(&live.node, REST, [1, ONE + 1, 0, 0]);
}

/// If a client acknowledges what it was not sent, only the bytes that it was sent count.
#[test]
fn only_what_was_sent_is_acknowledged() {
    let _host = own_host();
    let live = owned();
    let ack = live.ack();
    let far = Segment {
        ack: ack.ack.wrapping_add(1 << 28),
        ..ack
    };
    live.forwards(&far.flags("FA"), FORWARDED);
    counted(&live.node, REST, [1, ONE, 0, 0]);
}

/// A long response counts while it is acknowledged, a MiB at a time, even if no other request comes.
#[test]
fn a_long_answer_counts_on_its_way() {
    const MB: u32 = 1 << 20;
    let _host = own_host();
    let live = owned();
    // Makes the door believe that so many more bytes were acknowledged and are not counted yet.
    let back = |bytes: u32| {
        let doors = map_named(live.node.plane(), "doors");
        let key = live.stream.as_raw_fd().to_ne_bytes();
        let door = doors.lookup(&key, MapFlags::ANY).unwrap().unwrap();
        let mut door = Door::read_from_bytes(&door).unwrap();
        door.counted = door.counted.wrapping_sub(bytes);
        doors.update(&key, door.as_bytes(), MapFlags::ANY).unwrap();
    };
    back(MB - ANSWER.len() as u32 - 1);
    live.forwards(&live.ack(), FORWARDED);
    counted(&live.node, REST, [1, 0, 0, 0]);
    back(1);
    live.forwards(&live.ack(), FORWARDED);
    counted(&live.node, REST, [1, u64::from(MB), 0, 0]);
}

/// When a number is to name another route or pool, its counts begin at zero. The counts of this data server as a whole
/// stay.
#[test]
fn a_cleared_tally() {
    let _host = own_host();
    let live = owned();
    counted(&live.node, REST, [1, 0, 0, 0]);
    let plane = live.node.plane();
    plane.clear_tally(Tallied::Route(REST.0)).unwrap();
    assert_eq!(counts(&live.node, AtDoor::Route(REST.0)), [0; 4]);
    assert_eq!(counts(&live.node, AtDoor::Pool(REST.1)), [1, 0, 0, 0]);
    plane.clear_tally(Tallied::Pool(REST.1)).unwrap();
    plane.clear_tally(Tallied::DataServer(0)).unwrap();
    assert_eq!(counts(&live.node, AtDoor::Pool(REST.1)), [0; 4]);
    assert_eq!(counts(&live.node, AtDoor::All), [1, 0, 0, 0]);
}
