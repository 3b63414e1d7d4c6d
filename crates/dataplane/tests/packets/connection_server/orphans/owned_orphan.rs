//! Connections whose data server is dead and had a door for their requests. The connection servers keep the current
//! request as it told them.

use baton_abi::{Change, DATA_SERVER_DEAD, KeptRequest, TCB_ADOPTING, TCB_AT_DOOR, TCB_RESUMING};
use baton_dataplane::{Moving, Orphans, Step};

use super::orphan::{goes_to_the_rest, tell_rest};
use crate::{
    connection_server::http::{ANSWER, Connection, forwarded, get, routes_by_name},
    prelude::*,
};

const WAITS: Counted<'_> = &[("cs_orphan_waits", 1)];
const RESET: Counted<'_> = &[("cs_orphan_reset", 1)];

pub fn node() -> (Node, Orphans) {
    let node = Node::fresh_cs();
    routes_by_name(&node);
    let orphans = node.connection_server().orphans().unwrap();
    (node, orphans)
}

fn kill_first(node: &Node) {
    let mut way = data_server(0);
    way.flags |= DATA_SERVER_DEAD as u8;
    node.plane().set_data_server(0, &way).unwrap();
}

/// A connection whose second request the first data server is answering. Only the kept request shows this here. Its
/// response begins `ahead` bytes beyond what the client has.
pub fn answering(node: &Node, orphans: &Orphans, ahead: u32) -> (Connection, KeptRequest) {
    let mut connection = Connection::open(node, get("/ds1/"));
    connection.ack = connection.ack.wrapping_add(ANSWER);
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

/// The client waits only as long as it has sent nothing behind the request and is in the middle of its response.
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
            .expect_of(name, verdict, counted);
    }
    let (node, _) = node();
    let connection = Connection::open(&node, get("/ds1/"));
    kill_first(&node);
    node.run(&connection.empty().frame()).expect(Tx, RESET);
}

/// The daemon finds a connection however long its client was silent. From then on the connection is known by its
/// request.
#[test]
fn it_is_found_and_known_by_what_is_kept() {
    let (node, orphans) = node();
    let (connection, kept) = answering(&node, &orphans, 0);
    let key = node.tcb_key(&connection.client);
    let mut entry = connection.entry(&node);
    entry.state &= TCB_AT_DOOR as u8;
    assert_ne!(entry.request_seq, kept.request_seq);
    node.connection_server().set_tcb(&key, &entry).unwrap();
    let found = orphans.find_flows(0).unwrap();
    assert!(found.iter().any(|(at, _)| *at == key));

    let mut known = change(&node, &connection, &kept, 0, 0);
    let other = Change {
        request_seq: kept.request_seq.wrapping_add(1),
        ..known
    };
    assert_eq!(orphans.change(other).unwrap(), None);
    assert_eq!(connection.entry(&node).request_seq, entry.request_seq);
    known.next = 0;
    let named = orphans.change(known).unwrap().expect("is as it was");
    assert_eq!((named.owner, named.request_seq), (0, kept.request_seq));
    // The entry has the request's number, so the connection is known by it even when nothing is kept of it anymore.
    let nothing = KeptRequest::default();
    orphans.keep(&key, &nothing).unwrap();
    assert!(orphans.change(known).unwrap().is_some());
}

/// A client that has sent more has a further request under way, which no data server has.
#[test]
fn who_has_sent_more_is_not_known_by_it() {
    let (node, orphans) = node();
    let (mut connection, kept) = answering(&node, &orphans, 0);
    let packet = connection.data(get("/ds1/b"));
    connection.send(&node, &packet);
    let known = change(&node, &connection, &kept, 0, 0);
    assert_eq!(orphans.change(known).unwrap(), None);
}

/// Only an empty acknowledgement right behind the request goes as ADOPT, because the agent's socket begins there.
#[test]
fn acknowledgements_go_to_who_has_the_rest() {
    let (node, orphans) = node();
    let (mut connection, kept) = answering(&node, &orphans, 0);
    kill_first(&node);
    let taken = change(&node, &connection, &kept, TCB_RESUMING, TCB_ADOPTING);
    orphans.change(taken).unwrap().expect("is as it was");
    let ack = connection.empty();
    goes_to_the_rest(&node, &ack);

    // If the data server has the connection, it takes this packet too. If not, the client sends the packet again.
    let next = connection.data(get("/ds1/b"));
    connection.send(&node, &next).expect(Tx, &forwarded(&next));
    let ack = connection.empty();
    let seen = node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(2));
}

/// The data server drains. The response moves if nothing else is under way, and the entry stays one whose requests
/// its owner judges.
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
        let state = TCB_AT_DOOR | if is_begun { moves } else { 0 };
        assert_eq!(u32::from(entry.state), state, "{name}");
        assert_eq!(entry.owner, u16::from(is_begun), "{name}");
        if is_begun {
            orphans.step(moving, Step::Done).unwrap().unwrap();
            assert_eq!(u32::from(connection.entry(&node).state), TCB_AT_DOOR);
        }
    }
}

/// A change that leaves the owner as it is, and only has the entry name its current request.
pub fn change_to_itself(node: &Node, connection: &Connection, kept: &KeptRequest) -> Change {
    Change {
        next: 0,
        ..change(node, connection, kept, 0, 0)
    }
}

/// A connection of which the first data server has answered one request and has said that it is at rest.
fn at_rest(node: &Node) -> Connection {
    let mut connection = Connection::open(node, get("/ds1/"));
    connection.ack = connection.ack.wrapping_add(ANSWER);
    let ack = connection.empty();
    connection.send(node, &ack);
    tell_rest(node, &connection, &ack);
    connection
}

fn kill_owner(node: &Node) {
    kill_first(node);
    node.set_choices(HTTP_SERVICE, &[1, 1, 1]);
}

/// The next request goes to another data server, whatever pool the request before was routed to. Until the client has
/// something of the response, a retransmission is sent as ADOPT again.
#[test]
fn who_is_at_rest_goes_elsewhere_with_its_next_request() {
    let (node, orphans) = node();
    let mut connection = at_rest(&node);
    assert!(orphans.find_flows(0).unwrap().is_empty());
    kill_owner(&node);
    node.run(&connection.empty().frame()).expect(Drop, WAITS);
    let request = connection.data(get("/ds2/a"));
    let seen = connection
        .send(&node, &request)
        .expect(Tx, &[("cs_orphan_adopt", 1)]);
    let adopts = sent(&node, &seen);
    assert_eq!(adopts.to, ds(1));
    assert_eq!(adopts.message, adopt(&connection.client));
    assert_eq!(adopts.packet, request.packet());
    node.run(&request.frame())
        .expect(Tx, &[("cs_adopt_again", 1)]);
    connection.ack = connection.ack.wrapping_add(ANSWER);
    let ack = connection.empty();
    let seen = node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(1));
    let entry = connection.entry(&node);
    assert_eq!(orphans.find_flows(1).unwrap().len(), 1);
    assert_eq!(u32::from(entry.state), TCB_AT_DOOR);
}

/// No other data server gets a request that would perhaps be done twice, or whose response has begun. A request
/// behind another one goes to no other data server either.
#[test]
fn only_the_next_request_goes_elsewhere() {
    const POST: &str = "POST /ds1/ HTTP/1.1\r\nContent-Length: 1\r\n\r\nx";
    let get = || get("/ds1/a");
    for (name, before, acknowledged, after) in [
        ("it may be done twice", None, 0, POST.to_owned()),
        ("its head is cut", None, 0, get()[..9].to_owned()),
        ("its response has begun", None, 1, get()),
        ("another one is before it", Some(get()), 0, get()),
        ("it was answered", Some(get()), ANSWER, get()),
    ] {
        let (node, _) = node();
        let mut connection = at_rest(&node);
        if let Some(before) = before {
            let before = connection.data(before);
            connection
                .send(&node, &before)
                .expect(Tx, &forwarded(&before));
        }
        connection.ack = connection.ack.wrapping_add(acknowledged);
        kill_owner(&node);
        let next = connection.data(after);
        node.run(&next.frame()).expect_of(name, Tx, RESET);
    }
}

/// While its owner lives, a connection at rest stays with it.
#[test]
fn who_is_at_rest_stays_with_a_living_owner() {
    let (node, _) = node();
    let mut connection = at_rest(&node);
    let request = connection.data(get("/ds1/a"));
    let seen = connection
        .send(&node, &request)
        .expect(Tx, &forwarded(&request));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(0));
    node.run(&request.frame()).expect(Tx, &forwarded(&request));
}
