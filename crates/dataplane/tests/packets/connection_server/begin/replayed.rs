//! The first segment of a connection that has already begun comes again, because it was late on its way or because
//! somebody has seen it and replays it. Its request must not be done twice.

use std::time::Duration;

use crate::{
    at_once::come_twice_at_once,
    connection_server::{
        find::claim::moved,
        http::{Connection, forwarded, get},
    },
    prelude::*,
};

const CLAIMED: Counted<'_> = &[("cs_begun_before", 1), ("cs_claim", 1)];

/// The first segment comes again in the middle of a download, farther behind than a late packet could be. It goes to
/// the owner, which recognises it as old, and the entry does not change.
#[test]
fn in_the_middle_of_a_download() {
    let node = Node::cs();
    for acknowledged in [1 << 21, 1 << 27, (1 << 30) - 1] {
        let (mut connection, first) = open(&node);
        connection.ack = connection.ack.wrapping_add(acknowledged);
        let ack = connection.empty();
        node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
        let before = connection.entry(&node);
        for again in [
            first.clone(),
            first.clone().payload("POST / HTTP/1.1\r\n\r\n"),
        ] {
            let counted = [&[("cs_begun_before", 1)][..], &forwarded(&again)].concat();
            node.run(&again.frame()).expect(Tx, &counted);
            connection.is_unchanged(&node, &before);
        }
    }
}

/// The entry is gone and the cookie is still valid. The data servers are asked who has the connection, and the
/// segment begins nothing.
#[test]
fn after_its_end() {
    let node = Node::cs();
    let (connection, first) = open(&node);
    node.forget(&connection.client);
    for wait in [0, 75, 240] {
        node.wait(Duration::from_secs(wait));
        std::thread::sleep(Duration::from_millis(150));
        let seen = node.run(&first.frame()).expect(Tx, CLAIMED);
        assert_eq!(sent(&node, &seen).message, claim(&connection.client, 0));
        assert!(node.tcb(&connection.client).is_none());
    }
}

/// The connection began at another connection server, so only its entry shows here that it has begun.
#[test]
fn of_a_connection_that_began_elsewhere() {
    let node = Node::fresh_cs();
    let client = Client::fresh();
    let cookie = node.cookie(&client);
    let first = client.get(cookie);
    let later = client.later(cookie, 5000, 1 << 26);
    node.run(&moved(&node, 1, &later, linux_tcb()))
        .expect(crate::node::Drop, &[("cs_moved", 1)]);
    let before = node.tcb(&client).unwrap();
    assert_eq!(before.state, 0);
    let counted = [&[("cs_begun_before", 1)][..], &forwarded(&first)].concat();
    node.run(&first.frame()).expect(Tx, &counted);
    assert_eq!(node.tcb(&client).unwrap().last_ack, before.last_ack);
}

/// Until a response is acknowledged, the first segment that comes again is a retransmission of the client, so the
/// request is adopted again.
#[test]
fn a_retransmission_is_adopted_again() {
    let node = Node::cs();
    let (_, first) = open(&node);
    node.run(&first.frame())
        .expect(Tx, &[("cs_adopt_again", 1)]);
}

/// Another connection on the same ports begins, also while the entry of the last one still exists.
#[test]
fn a_new_connection_begins() {
    let node = Node::cs();
    let (connection, _) = open(&node);
    let mut client = connection.client;
    for _ in 0..20 {
        client = client.again();
        let cookie = node.cookie(&client);
        let first = client.get(cookie).payload(get("/ds1/"));
        node.run(&first.frame()).expect(Tx, &[("cs_adopt", 1)]);
    }
}

/// The counters of what may become of a first segment that has come twice at the same moment. It begins the connection,
/// or is dropped because the other one does so at this moment, or goes as ADOPT once more because the other one has done
/// so, or has a cookie that was used already when the entry was still the one before.
const OF_TWO: [&str; 4] = [
    "cs_adopt",
    "cs_adopted_meanwhile",
    "cs_adopt_again",
    "cs_begun_before",
];

/// Two processors may handle copies of a first segment at the same moment. One of them begins the connection, also where
/// the entry of an earlier connection on the same ports is replaced.
#[test]
fn of_two_copies_at_the_same_moment_one_begins_the_connection() {
    const CONNECTIONS: usize = 200;
    let node = Node::cs();
    for has_entry in [false, true] {
        let (clients, frames): (Vec<_>, Vec<_>) = (0..CONNECTIONS)
            .map(|_| {
                let earlier = Client::fresh();
                if !has_entry {
                    return (earlier, earlier.get(node.cookie(&earlier)).frame());
                }
                node.run(&earlier.get(node.cookie(&earlier)).frame())
                    .expect(Tx, &[("cs_adopt", 1)]);
                // So far ahead that no cookie makes it a packet of the earlier connection.
                let isn = earlier.isn.wrapping_add(1 << 30);
                let client = Client { isn, ..earlier };
                (client, client.get(node.cookie(&client)).frame())
            })
            .unzip();
        node.look();
        come_twice_at_once(&node, &frames);
        let counted = node.moved();
        let of = |name: &str| counted.get(name).copied().unwrap_or(0);
        let (begun, came) = (CONNECTIONS as u64, OF_TWO.iter().map(|name| of(name)).sum());
        assert_eq!((of("cs_adopt"), 2 * begun), (begun, came), "{counted:?}");
        for client in clients {
            let entry = node.tcb(&client).unwrap();
            assert_eq!(entry.request_seq, client.isn.wrapping_add(1));
        }
    }
}

fn open(node: &Node) -> (Connection, Segment) {
    let connection = Connection::open(node, get("/ds1/"));
    let mut first = connection.data(get("/ds1/"));
    first.seq = connection.client.isn.wrapping_add(1);
    (connection, first)
}
