//! Who answers a further request: its owner, as long as that is among those who can.

use baton_abi::{NO_DATA_SERVER, Pool, ServiceKey};

use super::{
    handover::MOVED,
    http::{ANSWER, Connection, forwarded, forwarded_and, get, route, routes_by_name},
};
use crate::{
    cluster::{HTTP, HTTP_SERVICE, data_server, ds, ds_mac},
    lccp::{handover, sent},
    node::{Node, Tx},
};

/// The pool of requests that no route takes.
const POOL: u16 = HTTP_SERVICE;

/// A request that its owner may answer stays with it, whose turn it ever is.
#[test]
fn an_owner_that_may_answer_does() {
    let node = Node::cs();
    routes_by_name(&node);
    node.set_choices(POOL, &[1, 2, 1]);
    let mut connection = Connection::answered(&node);
    for target in ["/", "/ds1/", "/anything", "/ds"] {
        let request = connection.data(get(target));
        let counted = forwarded_and("cs_request", &request);
        let seen = connection.send(&node, &request).expect(Tx, &counted);
        assert_eq!(seen.packet().ethernet.destination, ds_mac(0), "{target}");
        let entry = connection.entry(&node);
        assert_eq!(
            (entry.owner, u32::from(entry.previous)),
            (0, NO_DATA_SERVER)
        );
        assert_eq!(
            (entry.request_seq, entry.last_ack),
            (request.seq, request.ack)
        );
        connection.ack += ANSWER;
    }
}

/// It was taken out of its pool: by the operator, by its own check, or because it is silent.
#[test]
fn an_owner_that_is_no_member_any_more() {
    let node = Node::cs();
    let mut connection = Connection::open(&node, get("/"));
    let owner = connection.entry(&node).owner;
    let next = (owner + 1) % 3;
    let members = [1 << next, 0, 0, 0];
    change_pool(&node, |pool| pool.members = members);
    node.set_choices(POOL, &[next; 3]);
    connection.ack += ANSWER;
    let request = connection.data(get("/"));
    let seen = connection.send(&node, &request).expect(Tx, MOVED);
    let message = sent(&node, &seen);
    assert_eq!(message.to, ds(owner));
    assert_eq!(message.message, handover(&connection.client, next));
}

/// Members far up in the bits.
#[test]
fn every_member_is_told_from_every_other() {
    let node = Node::cs();
    for owner in [0u16, 1, 63, 64, 127, 128, 191, 192, 255] {
        node.plane()
            .set_data_server(owner, &data_server(owner))
            .unwrap();
        node.set_choices(POOL, &[owner; 3]);
        let bit = 1u64 << (owner % 64);
        for is_member in [true, false] {
            change_pool(&node, |pool| pool.members = [u64::MAX; 4]);
            let mut connection = Connection::open(&node, get("/"));
            connection.ack += ANSWER;
            assert_eq!(connection.entry(&node).owner, owner);
            change_pool(&node, |pool| {
                let word = &mut pool.members[usize::from(owner / 64)];
                *word = if is_member { bit } else { !bit };
            });
            // The next is another one, so that a move shows.
            node.set_choices(POOL, &[2; 3]);
            let request = connection.data(get("/"));
            let seen = connection.send(&node, &request);
            let moved = seen.counted.contains_key("cs_handover");
            assert_eq!(moved, !is_member, "{owner}: {seen:?}");
            node.set_choices(POOL, &[owner; 3]);
        }
    }
}

/// Whoever came new into a pool gets a share of the connections that are there already.
#[test]
fn a_new_generation_chooses_once_more() {
    let node = Node::cs();
    let (mut stays, mut moves) = (
        Connection::open(&node, get("/")),
        Connection::open(&node, get("/")),
    );
    let owner = stays.entry(&node).owner;
    let other = (moves.entry(&node).owner + 1) % 3;
    change_pool(&node, |pool| pool.generation = 9);
    (stays.ack, moves.ack) = (stays.ack + ANSWER, moves.ack + ANSWER);

    // The same once more is no move.
    node.set_choices(POOL, &[owner; 3]);
    let request = stays.data(get("/"));
    let counted = forwarded_and("cs_request", &request);
    stays.send(&node, &request).expect(Tx, &counted);
    assert_eq!(stays.entry(&node).generation, 9);

    node.set_choices(POOL, &[other; 3]);
    let request = moves.data(get("/"));
    let seen = moves.send(&node, &request).expect(Tx, MOVED);
    assert_eq!(sent(&node, &seen).message, handover(&moves.client, other));
    assert_eq!(moves.entry(&node).generation, 9);

    // Then everybody stays.
    node.set_choices(POOL, &[0, 1, 2]);
    for connection in [&mut stays, &mut moves] {
        for _ in 0..6 {
            connection.ack += ANSWER;
            let request = connection.data(get("/"));
            let counted = forwarded_and("cs_request", &request);
            connection.send(&node, &request).expect(Tx, &counted);
        }
    }
}

/// The generation counts for the pool that it is of.
#[test]
fn another_pool_has_another_generation() {
    let node = Node::cs();
    routes_by_name(&node);
    change_pool(&node, |pool| pool.generation = 4);
    node.set_choices(POOL, &[2; 3]);
    let mut connection = Connection::answered(&node);
    // To the pool of all, in which the owner is, and back.
    for target in ["/", "/ds1/", "/"] {
        let request = connection.data(get(target));
        let counted = forwarded_and("cs_request", &request);
        connection.send(&node, &request).expect(Tx, &counted);
        connection.ack += ANSWER;
    }
}

/// Its connections go on as they are, until they end.
#[test]
fn a_service_that_is_gone() {
    let node = Node::cs();
    routes_by_name(&node);
    let mut connection = Connection::answered(&node);
    let key = ServiceKey::of(HTTP);
    node.plane().remove_service(&key).unwrap();
    let request = connection.data(get("/ds2/"));
    let seen = connection.send(&node, &request);
    let seen = seen.expect(Tx, &forwarded(&request));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(0));
}

/// By a hash of the path: what is another's moves, what is the owner's own stays.
#[test]
fn by_path() {
    const BY_PATH: u32 = 5;
    let node = Node::cs();
    node.plane()
        .set_routes(&[(route(0, "/"), BY_PATH)])
        .unwrap();
    let mut connection = Connection::open(&node, get("/0"));
    let mut moved = 0;
    for number in 1..60 {
        connection.ack += ANSWER;
        let target = format!("/{number}");
        let own = Connection::open(&node, get(&target)).entry(&node).owner;
        let before = connection.entry(&node).owner;
        let request = connection.data(get(&target));
        let seen = connection.send(&node, &request);
        assert_eq!(connection.entry(&node).owner, own);
        assert_eq!(seen.counted.contains_key("cs_handover"), own != before);
        moved += u32::from(own != before);
    }
    assert!((20..59).contains(&moved), "{moved} of 59");
}

fn change_pool(node: &Node, change: impl FnOnce(&mut Pool)) {
    let mut pool = node.plane().pool(POOL).unwrap();
    change(&mut pool);
    node.plane().set_pool(POOL, &pool).unwrap();
}
