//! Idle connections of a data server that drains: which they are, and what RELEASE makes of them.

use std::time::Duration;

use baton_abi::{
    DataServer, IdleFlow, NO_DATA_SERVER, Pool, SERVICE_STRICT, TCB_ADOPTING, TCB_FIN, TCB_PINNED,
    TCB_PUNTED, TCB_RELEASED, TCB_RST, TCB_WAITING, Tcb,
};
use baton_dataplane::{Releaser, Resumed, Walked};
use baton_wire::{Keep, Message};

use super::{
    http::{ANSWER, Connection, forwarded, get, routes_by_name},
    sweep::{tick_now, ticks},
};
use crate::{
    cluster::{ARRIVES_AT, CS, HTTP_SERVICE, data_server, ds, ds_mac, key},
    lccp::{flow, handover, linux_tcb, opened, release, to_cs},
    node::{Drop, Node, Tx},
    read::Packet,
    segment::Segment,
};

const QUIET: Duration = Duration::from_secs(5);

/// The first data server drains: it is in no pool any more.
fn node() -> (Node, Releaser) {
    let node = Node::fresh_cs();
    let releaser = node.plane().releaser(ARRIVES_AT).unwrap();
    (node, releaser)
}

fn drains(node: &Node) {
    members(node, &[1, 2]);
}

fn members(node: &Node, servers: &[u16]) {
    let before = node.plane().pool(HTTP_SERVICE).unwrap();
    let pool = Pool {
        choices: servers.len() as u32,
        members: [
            servers.iter().fold(0, |bits, server| bits | 1 << server),
            0,
            0,
            0,
        ],
        ..before
    };
    node.set_choices(HTTP_SERVICE, servers);
    node.plane().set_pool(HTTP_SERVICE, &pool).unwrap();
}

/// A connection of the first data server that has been answered, and then quiet for this long.
fn idle_since(node: &Node, seconds: i64) -> Connection {
    members(node, &[0]);
    let mut connection = Connection::open(node, get("/"));
    connection.ack += ANSWER;
    let ack = connection.empty();
    node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    change(node, &connection, |tcb| {
        tcb.seen = tick_now().wrapping_sub(ticks(seconds));
    });
    connection
}

fn change(node: &Node, connection: &Connection, change: impl FnOnce(&mut Tcb)) {
    let mut tcb = connection.entry(node);
    change(&mut tcb);
    let key = node.tcb_key(&connection.client);
    node.plane().set_tcb(&key, &tcb).unwrap();
}

fn found(releaser: &Releaser) -> Vec<IdleFlow> {
    std::iter::from_fn(|| releaser.next().unwrap()).collect()
}

/// As the daemon makes it.
fn made(connection: &Connection) -> Segment {
    connection.empty().options([1; 12])
}

#[track_caller]
fn leaves(node: &Node, releaser: &Releaser, connection: &Connection) -> crate::lccp::Sent {
    let Resumed::Leaves(frame) = releaser.release(&made(connection).frame()).unwrap() else {
        panic!("no message");
    };
    crate::read::verify_checksums(&frame).unwrap();
    opened(node, &Packet::read(&frame).unwrap())
}

#[test]
fn idle_is_between_two_requests_and_quiet() {
    let (node, releaser) = node();
    let idle = idle_since(&node, 10);
    let _fresh = idle_since(&node, 2);
    let busy = [TCB_WAITING, TCB_ADOPTING | TCB_WAITING, TCB_PUNTED];
    for state in busy.into_iter().chain([TCB_FIN, TCB_RST]) {
        let other = idle_since(&node, 10);
        change(&node, &other, |tcb| tcb.state = state as u8);
    }
    // Part of a body is missing.
    let uploads = idle_since(&node, 10);
    change(&node, &uploads, |tcb| tcb.next_request += 100);
    let pinned = idle_since(&node, 10);
    change(&node, &pinned, |tcb| tcb.state = TCB_PINNED as u8);
    // Of a data server that does not drain.
    let others = idle_since(&node, 10);
    change(&node, &others, |tcb| tcb.owner = 1);

    let walked = releaser.walk(&[0], QUIET).unwrap();
    let expected = Walked {
        idle: 1,
        pinned: 1,
        busy: 2 + busy.len() as u32,
    };
    assert_eq!(walked, expected);
    let flow = IdleFlow {
        flow: node.tcb_key(&idle.client),
        seq: idle.seq,
        ack: idle.ack,
    };
    assert_eq!(found(&releaser), [flow]);
    assert_eq!(found(&releaser), [], "each once");
    assert_eq!(releaser.walk(&[2], QUIET).unwrap(), Walked::default());
}

/// The rest is found the next time.
#[test]
fn more_than_there_is_room_for() {
    let node = Node::fresh_cs();
    let releaser = node.plane().releaser(ARRIVES_AT).unwrap();
    let room = baton_abi::IDLE_FLOWS;
    for number in 0..room + 10 {
        let client = crate::segment::Client::fresh();
        let tcb = Tcb {
            seen: tick_now().wrapping_sub(ticks(10)),
            last_ack: number,
            previous: NO_DATA_SERVER as u16,
            ..Tcb::default()
        };
        node.plane().set_tcb(&node.tcb_key(&client), &tcb).unwrap();
    }
    assert_eq!(releaser.walk(&[0], QUIET).unwrap().idle, room);
    assert_eq!(found(&releaser).len(), room as usize);
}

/// The message goes to the owner, and the entry is the next one's. What the client sends until the owner has
/// surely let go takes the way by it, a request included.
#[test]
fn a_released_connection_is_the_next_ones() {
    let (node, releaser) = node();
    let mut connection = idle_since(&node, 10);
    drains(&node);
    let before = node.plane().counters().unwrap();
    let message = leaves(&node, &releaser, &connection);
    let after = node.plane().counters().unwrap();
    let count =
        |all: &[(String, u64)]| all.iter().find(|(name, _)| name == "cs_release").unwrap().1;
    assert_eq!(count(&after) - count(&before), 1);
    let entry = connection.entry(&node);
    let next = entry.owner;
    assert!([1, 2].contains(&next), "{entry:?}");
    let released = TCB_ADOPTING | TCB_RELEASED;
    assert_eq!((entry.previous, u32::from(entry.state)), (0, released));
    assert_eq!((message.from, message.to), (CS, ds(0)));
    assert_eq!(message.message, release(&connection.client, next));
    assert_eq!(message.packet, made(&connection).packet());

    let probe = connection.empty();
    let seen = node.run(&probe.frame()).expect(Tx, &[("cs_queued", 1)]);
    assert_eq!(seen.packet().ethernet.destination, ds_mac(0));

    let request = connection.data(get("/"));
    let seen = connection
        .send(&node, &request)
        .expect(Tx, &[("cs_request", 1), ("cs_handover_again", 1)]);
    let message = crate::lccp::sent(&node, &seen);
    assert_eq!(message.to, ds(0));
    assert_eq!(message.message, handover(&connection.client, next));
    assert_eq!(message.packet, request.packet());

    // Answered: from now on straight.
    connection.ack += ANSWER;
    let ack = connection.empty();
    let seen = node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(next));
}

/// The next walk has it sent once more, and ends the way by the owner, who may be switched off by then. What
/// comes next is adopted, should the connection not have come there.
#[test]
fn the_way_by_the_last_owner_ends() {
    let (node, releaser) = node();
    for (next_packet, request) in [
        (get("/"), true),
        ("GET / HTTP/1.1\r\nHost: a\r\n".into(), false),
    ] {
        let mut connection = idle_since(&node, 10);
        drains(&node);
        leaves(&node, &releaser, &connection);
        let next = connection.entry(&node).owner;
        releaser.walk(&[0], QUIET).unwrap();
        let [found] = found(&releaser)[..] else {
            panic!("one is being released");
        };
        assert_eq!(found.flow, node.tcb_key(&connection.client));
        node.look();
        let message = leaves(&node, &releaser, &connection);
        assert_eq!(node.moved().get("cs_release_again"), Some(&1));
        assert_eq!(message.to, ds(0));
        assert_eq!(message.message, release(&connection.client, next));
        assert_eq!(u32::from(connection.entry(&node).state), TCB_RELEASED);

        let probe = connection.empty();
        let seen = node.run(&probe.frame()).expect(Tx, &forwarded(&probe));
        assert_eq!(seen.packet().ethernet.destination, ds_mac(next));
        let packet = connection.data(next_packet);
        for _ in 0..2 {
            let seen = node.run(&packet.frame());
            assert_eq!(seen.counted.get("cs_adopt_again"), Some(&1), "{seen:?}");
            let message = crate::lccp::sent(&node, &seen);
            assert_eq!(message.to, ds(next));
            assert_eq!(message.message, crate::lccp::adopt(&connection.client));
            assert_eq!(message.packet, packet.packet());
        }
        connection.seq += packet.payload.len() as u32;
        connection.ack += ANSWER;
        let ack = connection.empty();
        node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
        let pinned = if request { 0 } else { TCB_PINNED };
        assert_eq!(u32::from(connection.entry(&node).state), pinned);
    }
}

/// Where only its pool may answer, too, the next request is none that has come before, and the first one of its owner.
#[test]
fn what_comes_next_is_new_to_the_next_owner() {
    for is_sent_again in [false, true] {
        let (node, releaser) = node();
        routes_by_name(&node);
        node.change_flags(|flags| flags | SERVICE_STRICT);
        let mut connection = idle_since(&node, 10);
        drains(&node);
        leaves(&node, &releaser, &connection);
        let next = connection.entry(&node).owner;
        if is_sent_again {
            leaves(&node, &releaser, &connection);
        }
        let request = connection.data(get("/"));
        let seen = connection.send(&node, &request);
        let entry = connection.entry(&node);
        assert_eq!((entry.owner, entry.requests), (next, 1), "{seen:?}");
        let how = ["cs_handover_again", "cs_adopt_again"][usize::from(is_sent_again)];
        let seen = seen.expect(Tx, &[("cs_request", 1), (how, 1)]);
        assert_eq!(crate::lccp::sent(&node, &seen).packet, request.packet());

        // The first one may be for another pool.
        let connection = idle_since(&node, 10);
        drains(&node);
        leaves(&node, &releaser, &connection);
        leaves(&node, &releaser, &connection);
        let next = connection.entry(&node).owner;
        let request = connection.data(get("/ds1/"));
        let seen = node.run(&request.frame());
        let seen = seen.expect(Tx, &[("cs_request", 1), ("cs_handover", 1)]);
        let message = crate::lccp::sent(&node, &seen);
        assert_eq!(message.to, ds(next));
        let Message::Elsewhere { tcb, .. } = message.message else {
            panic!("{message:?}");
        };
        assert_eq!(tcb.attempt, 0);
    }
}

/// To whom it was given may drain as well.
#[test]
fn released_twice() {
    let (node, releaser) = node();
    let connection = idle_since(&node, 10);
    members(&node, &[1]);
    leaves(&node, &releaser, &connection);
    leaves(&node, &releaser, &connection);
    members(&node, &[2]);
    assert_eq!(releaser.walk(&[0, 1], QUIET).unwrap().idle, 1);
    let message = leaves(&node, &releaser, &connection);
    assert_eq!(message.to, ds(1));
    assert_eq!(message.message, release(&connection.client, 2));
}

/// The owner was not idle: it is the owner still, and nothing was a request.
#[test]
fn the_owner_refuses() {
    let (node, releaser) = node();
    let connection = idle_since(&node, 10);
    drains(&node);
    leaves(&node, &releaser, &connection);
    let message = Message::Keep {
        flow: flow(&connection.client),
        tcb: linux_tcb(),
        keep: Keep::Busy,
    };
    let tally = || {
        node.plane()
            .tally(baton_dataplane::Tallied::DataServer(0))
            .unwrap()
    };
    let before = tally();
    let frame = to_cs(
        0,
        &message,
        node.now(),
        &key().lccp(),
        &made(&connection).packet(),
    );
    node.run(&frame).expect(Drop, &[("cs_kept", 1)]);
    assert_eq!(tally(), before);
    let entry = connection.entry(&node);
    assert_eq!((entry.owner, u32::from(entry.state)), (0, 0));
    // The next walk finds it again.
    assert_eq!(releaser.walk(&[0], QUIET).unwrap().idle, 1);
}

/// Something has happened between the walk and this, or nobody else is there.
#[test]
fn what_stays() {
    let (node, releaser) = node();
    let stays = |connection: &Connection, counter: &str| {
        let before = connection.entry(&node);
        node.look();
        let resumed = releaser.release(&made(connection).frame()).unwrap();
        assert_eq!(resumed, Resumed::Dropped, "{counter}");
        let moved: Vec<_> = node.moved().into_iter().collect();
        assert_eq!(moved, [(counter.to_owned(), 1)]);
        assert_eq!(connection.entry(&node), before, "{counter}");
    };
    let late = "cs_release_late";
    // It is back.
    let connection = idle_since(&node, 10);
    stays(&connection, late);
    drains(&node);
    for (seq, ack) in [(1, 0), (0, 1)] {
        let mut elsewhere = connection;
        elsewhere.seq += seq;
        elsewhere.ack += ack;
        stays(&elsewhere, late);
    }
    change(&node, &connection, |tcb| tcb.state = TCB_WAITING as u8);
    stays(&connection, late);
    change(&node, &connection, |tcb| tcb.state = 0);

    members(&node, &[]);
    stays(&connection, "cs_release_nobody");
    members(&node, &[1]);
    let gone = DataServer::default();
    node.plane().set_data_server(1, &gone).unwrap();
    stays(&connection, "cs_release_nobody");
    node.plane().set_data_server(1, &data_server(1)).unwrap();
    leaves(&node, &releaser, &connection);
}
