//! Connections whose data server is dead, and had seen to their requests: what it told of the current one is kept.

use baton_abi::{
    Change, DATA_SERVER_DEAD, KeptRequest, SERVICE_HANDOVER, SERVICE_OWNER, TCB_ADOPTING,
    TCB_PINNED, TCB_RESUMING,
};
use baton_dataplane::{Moving, Orphans, Step, Tick, tick_ago};

use super::{
    http::{ANSWER, Connection, forwarded, get, routes_by_name},
    orphan::goes_to_the_rest,
};
use crate::{
    cluster::{data_server, ds_mac},
    node::{Counted, Drop, Node, Tx},
};

const WAITS: Counted<'_> = &[("cs_orphan_waits", 1)];
const RESET: Counted<'_> = &[("cs_orphan_reset", 1)];

fn node() -> (Node, Orphans) {
    let node = Node::fresh_cs();
    node.change_flags(|flags| flags & !SERVICE_HANDOVER | SERVICE_OWNER);
    routes_by_name(&node);
    let orphans = node.plane().orphans().unwrap();
    (node, orphans)
}

fn kill_first(node: &Node) {
    let mut way = data_server(0);
    way.flags |= DATA_SERVER_DEAD as u8;
    node.plane().set_data_server(0, &way).unwrap();
}

/// The first data server is answering its second request, which nothing here says but what is kept: from `ahead` bytes beyond what
/// the client has.
fn answering(node: &Node, orphans: &Orphans, ahead: u32) -> (Connection, KeptRequest) {
    let mut connection = Connection::open_any(node, get("/ds1/"));
    connection.ack += ANSWER;
    let request = connection.data(get("/ds1/a"));
    connection
        .send(node, &request)
        .expect(Tx, &forwarded(&request));
    let mut kept = KeptRequest {
        request_seq: request.seq,
        response_start: request.ack.wrapping_add(ahead),
        bytes: request.payload.len() as u16,
        ..KeptRequest::default()
    };
    kept.text[..request.payload.len()].copy_from_slice(&request.payload);
    orphans
        .keep(&node.tcb_key(&connection.client), &kept)
        .unwrap();
    (connection, kept)
}

fn change(
    node: &Node,
    connection: &Connection,
    kept: &KeptRequest,
    set: u32,
    clear: u32,
) -> Change {
    Change {
        key: node.tcb_key(&connection.client),
        request_seq: kept.request_seq,
        owner: 0,
        next: 2,
        set: set as u8,
        clear: clear as u8,
        ..Change::default()
    }
}

/// Only as long as the client has sent nothing behind the request, and is in the middle of its response.
#[test]
fn who_is_in_the_middle_of_a_response_waits() {
    for (name, ahead, more, counted) in [
        ("it has nothing yet", 0, 0, WAITS),
        ("it has something", 0u32.wrapping_sub(700), 0, WAITS),
        ("an earlier response", 700, 0, RESET),
        ("another request", 0, 20, RESET),
    ] {
        let (node, orphans) = node();
        let (mut connection, _) = answering(&node, &orphans, ahead);
        if more > 0 {
            let packet = connection.data(vec![b'x'; more]);
            connection.send(&node, &packet);
        }
        kill_first(&node);
        let verdict = if counted == WAITS { Drop } else { Tx };
        node.run(&connection.empty().frame())
            .check(verdict, counted)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let (node, _) = node();
    let connection = Connection::open_any(&node, get("/ds1/"));
    kill_first(&node);
    node.run(&connection.empty().frame()).expect(Tx, RESET);
}

/// What the daemon looks for is found however long its client was silent, and known by the request from then on.
#[test]
fn it_is_found_and_known_by_what_is_kept() {
    let (node, orphans) = node();
    let (connection, kept) = answering(&node, &orphans, 0);
    let key = node.tcb_key(&connection.client);
    let Tick(now) = tick_ago(std::time::Duration::ZERO);
    let mut entry = connection.entry(&node);
    entry.state &= TCB_PINNED as u8;
    assert_ne!(entry.request_seq, kept.request_seq);
    node.plane().set_tcb(&key, &entry).unwrap();
    let found = orphans.muster(0, Tick(now + 1000)).unwrap();
    assert!(found.iter().any(|(at, _)| *at == key));

    let mut known = change(&node, &connection, &kept, 0, 0);
    let other = Change {
        request_seq: kept.request_seq + 1,
        ..known
    };
    assert_eq!(orphans.change(other).unwrap(), None);
    assert_eq!(connection.entry(&node).request_seq, entry.request_seq);
    known.next = 0;
    let named = orphans.change(known).unwrap().expect("is as it was");
    assert_eq!((named.owner, named.request_seq), (0, kept.request_seq));
    // By that it is known also when nothing is kept of it any more.
    let nothing = KeptRequest::default();
    orphans.keep(&key, &nothing).unwrap();
    assert!(orphans.change(known).unwrap().is_some());
}

/// A client that has sent more has a request under way that nobody has.
#[test]
fn who_has_sent_more_is_not_known_by_it() {
    let (node, orphans) = node();
    let (mut connection, kept) = answering(&node, &orphans, 0);
    let packet = connection.data(get("/ds1/b"));
    connection.send(&node, &packet);
    let known = change(&node, &connection, &kept, 0, 0);
    assert_eq!(orphans.change(known).unwrap(), None);
}

/// The agent's socket begins behind the request, and nowhere else.
#[test]
fn acknowledgements_go_to_who_has_the_rest() {
    let (node, orphans) = node();
    let (mut connection, kept) = answering(&node, &orphans, 0);
    kill_first(&node);
    let taken = change(&node, &connection, &kept, TCB_RESUMING, TCB_ADOPTING);
    orphans.change(taken).unwrap().expect("is as it was");
    let ack = connection.empty();
    goes_to_the_rest(&node, &ack);

    // If it has the connection, it has this too; if not, the client sends it again.
    let next = connection.data(get("/ds1/b"));
    connection.send(&node, &next).expect(Tx, &forwarded(&next));
    let ack = connection.empty();
    let seen = node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(2));
}

/// Its data server drains: the response goes if nothing but it is under way, and the entry stays one that its owner sees to.
#[test]
fn who_is_in_the_middle_of_a_response_may_leave() {
    for (name, ahead, more, is_begun) in [
        ("it has something", 0u32.wrapping_sub(700), 0, true),
        ("an earlier response", 700, 0, false),
        ("another request", 0, 20, false),
    ] {
        let (node, orphans) = node();
        let (mut connection, kept) = answering(&node, &orphans, ahead);
        let named = orphans.change(change_to_itself(&node, &connection, &kept));
        if more > 0 {
            let packet = connection.data(vec![b'x'; more]);
            connection.send(&node, &packet);
        }
        let moving = Moving {
            key: node.tcb_key(&connection.client),
            request_seq: kept.request_seq,
            from: 0,
            to: 1,
        };
        assert_eq!(named.unwrap().is_some(), ahead != 700, "{name}");
        let begun = orphans.step(moving, Step::Begin).unwrap();
        assert_eq!(begun.is_some(), is_begun, "{name}");
        let entry = connection.entry(&node);
        let moves = TCB_RESUMING | TCB_ADOPTING;
        let state = TCB_PINNED | if is_begun { moves } else { 0 };
        assert_eq!(u32::from(entry.state), state, "{name}");
        assert_eq!(entry.owner, u16::from(is_begun), "{name}");
        if is_begun {
            orphans.step(moving, Step::Done).unwrap().unwrap();
            assert_eq!(u32::from(connection.entry(&node).state), TCB_PINNED);
        }
    }
}

/// The entry says which request it is about.
fn change_to_itself(node: &Node, connection: &Connection, kept: &KeptRequest) -> Change {
    Change {
        next: 0,
        ..change(node, connection, kept, 0, 0)
    }
}
