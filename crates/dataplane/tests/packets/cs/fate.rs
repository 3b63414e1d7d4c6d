//! What becomes of a connection at a request, by what the request is.

use baton_abi::TCB_PINNED;

use super::http::{Connection, forwarded, forwarded_and, get};
use crate::{
    cluster::{HTTP, ds, ds_mac},
    lccp::{handover, sent},
    node::{Drop, Node, Tx},
    segment::{Client, Segment},
};

/// What becomes of a connection at a request for the second data server, when the first has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is handed over.
    Moves,
    /// It is a request, but one that any data server may answer.
    Stays,
    /// The owner keeps it for this request, of whose body so many bytes follow. The next one may move.
    Waits(usize),
    /// The owner keeps it for good.
    Pins,
    /// Only user space reads it as servers do, and nobody is there: it is dropped, and nothing changes.
    Asks,
}
pub use Fate::{Asks, Moves, Pins, Stays, Waits};

/// A packet whose request waits for user space.
const WAITS_FOR_READER: &[(&str, u64)] = &[("cs_punt_stale", 1), ("cs_target_waits", 1)];

/// As a connection's first request, and as its second.
#[track_caller]
pub fn meets(node: &Node, name: &str, fate: Fate, request: &[u8]) {
    first(node, name, fate, request);
    second(node, name, fate, |packet| packet.payload(request));
}

/// As a connection's first packet: the entry says whether the next request may be another's.
#[track_caller]
fn first(node: &Node, name: &str, fate: Fate, request: &[u8]) {
    let client = Client::of(HTTP);
    let packet = client.get(node.cookie(&client)).payload(request);
    let seen = node.run(&packet.frame());
    if fate == Asks {
        seen.check(Drop, WAITS_FOR_READER)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(node.tcb(&client), None, "{name}");
        return;
    }
    let mut counted = vec![("cs_adopt", 1)];
    if fate == Pins {
        counted.push(("cs_pinned", 1));
    }
    seen.check(Tx, &counted)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let entry = node.tcb(&client).unwrap();
    let pinned = u32::from(entry.state) & TCB_PINNED != 0;
    assert_eq!(pinned, fate == Pins, "{name}");
    if matches!(fate, Moves | Waits(_)) {
        assert_eq!(entry.owner, 1, "{name}");
    }
}

/// As its second, when the first data server has answered one request.
#[track_caller]
pub fn second(node: &Node, name: &str, fate: Fate, packet: impl Fn(Segment) -> Segment) {
    let mut connection = Connection::answered(node);
    let packet = packet(connection.data([]));
    let before = connection.entry(node);
    let seen = connection.send(node, &packet);
    if fate == Asks {
        seen.check(Drop, WAITS_FOR_READER)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(connection.entry(node), before, "{name}");
        return;
    }
    let mut counted = match fate {
        Moves => vec![("cs_handover", 1), ("cs_request", 1)],
        Stays => forwarded_and("cs_request", &packet),
        Waits(_) => {
            let mut counted = forwarded_and("cs_request", &packet);
            counted.push(("cs_unmoved", 1));
            counted
        }
        Pins => forwarded_and("cs_pinned", &packet),
        Asks => unreachable!("it has been dropped"),
    };
    if packet.flags.contains('F') {
        counted.push(("cs_fin", 1));
    }
    seen.check(Tx, &counted)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(0), "{name}");
    let entry = connection.entry(node);
    let pinned = u32::from(entry.state) & TCB_PINNED != 0;
    assert_eq!(pinned, fate == Pins, "{name}");
    if fate == Moves {
        let message = sent(node, &seen);
        assert_eq!(message.to, ds(0), "{name}");
        assert_eq!(message.message, handover(&connection.client, 1), "{name}");
        assert_eq!(message.packet, packet.packet(), "{name}");
        assert_eq!((entry.owner, entry.previous), (1, 0), "{name}");
        return;
    }
    assert_eq!(entry.owner, 0, "{name}");
    if let Waits(body) = fate {
        moves_behind(node, connection, name, body);
        return;
    }
    // A connection that is pinned stays so, whatever comes.
    connection.ack += 500;
    let next = connection.data("GET /ds3/ HTTP/1.1\r\nHost: a\r\n\r\n");
    if fate == Pins && !packet.flags.contains('F') {
        let seen = connection.send(node, &next);
        seen.check(Tx, &forwarded(&next))
            .unwrap_or_else(|error| panic!("{name}, then another: {error}"));
    }
}

/// Behind its body, which is forwarded whatever it looks like, the next request moves it.
#[track_caller]
fn moves_behind(node: &Node, mut connection: Connection, name: &str, body: usize) {
    let lookalike = get("/ds3/").into_bytes();
    let body: Vec<u8> = lookalike.into_iter().cycle().take(body).collect();
    for part in body.chunks(1000) {
        let part = connection.data(part);
        let seen = connection.send(node, &part);
        seen.check(Tx, &forwarded(&part))
            .unwrap_or_else(|error| panic!("{name}, its body: {error}"));
    }
    connection.ack += 500;
    let next = connection.data(get("/ds3/"));
    let seen = connection.send(node, &next);
    seen.check(Tx, &[("cs_handover", 1), ("cs_request", 1)])
        .unwrap_or_else(|error| panic!("{name}, then another: {error}"));
}
