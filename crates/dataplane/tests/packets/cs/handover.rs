//! HANDOVER: a request that is another data server's goes to the owner, and what follows it too.

use baton_abi::{
    DATA_SERVER_LOCAL, DATA_SERVER_PRESENT, DATA_SERVER_ROUTED, DataServer, TCB_ADOPTING,
    TCB_WAITING,
};
use baton_wire::Message;

use super::http::{ANSWER, Connection, forwarded, forwarded_and, get, routes_by_name};
use crate::{
    cluster::{CS, CS_MAC, data_server, ds, ds_mac, first_pool_of_one},
    lccp::{adopt, forward_to, handover, sent},
    node::{Counted, Node, Pass, Redirect, Tx, Verdict},
    segment::Segment,
};

pub const MOVED: Counted<'_> = &[("cs_handover", 1), ("cs_request", 1)];

#[test]
fn the_owner_is_asked_and_the_next_is_believed_to_have_it() {
    let node = Node::fresh_cs();
    routes_by_name(&node);
    let mut connection = Connection::answered(&node);
    let request = connection.data(get("/ds2/"));
    let seen = connection.send(&node, &request).expect(Tx, MOVED);
    assert_eq!(seen.packet().ethernet.source, CS_MAC);
    assert_eq!(seen.packet().ethernet.destination, ds_mac(0));
    assert_eq!(seen.frame.len(), request.frame().len() + 100);
    let message = sent(&node, &seen);
    assert_eq!((message.from, message.to), (CS, ds(0)));
    assert_eq!(message.message, handover(&connection.client, 1));
    assert_eq!(message.packet, request.packet());

    let entry = connection.entry(&node);
    assert_eq!((entry.owner, entry.previous), (1, 0));
    assert_eq!(
        (entry.request_seq, entry.last_ack),
        (request.seq, request.ack)
    );
    assert_eq!(
        (entry.last_seq, entry.last_ack),
        (connection.seq, request.ack)
    );
    assert_eq!(u32::from(entry.state), TCB_ADOPTING | TCB_WAITING);
    assert_eq!(entry.pool, first_pool_of_one() + 1);
    let adoptions = [0, 1, 2].map(|index| node.connections(index));
    assert_eq!(adoptions, [1, 1, 0]);
}

/// Its first acknowledgement of the new response shows that somebody has it.
#[test]
fn and_so_on_from_one_to_the_next() {
    let node = Node::cs();
    routes_by_name(&node);
    let mut connection = Connection::answered(&node);
    for (from, to) in [(0, 1), (1, 2), (2, 0), (0, 2), (2, 1)] {
        let request = connection.data(get(&format!("/ds{}/", to + 1)));
        let seen = connection.send(&node, &request).expect(Tx, MOVED);
        let message = sent(&node, &seen);
        assert_eq!(message.to, ds(from));
        assert_eq!(message.message, handover(&connection.client, to));
        connection.ack += ANSWER;
        let ack = connection.empty();
        let seen = node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
        assert_eq!(seen.packet().ethernet.destination, ds_mac(to));
        assert_eq!(connection.entry(&node).state, 0);
    }
}

/// Lost, or its ADOPT: the same again, to the same.
#[test]
fn the_request_sent_again() {
    let node = Node::cs();
    routes_by_name(&node);
    let (connection, request) = Connection::handed_over(&node);
    let before = connection.entry(&node);
    for _ in 0..3 {
        let seen = node.run(&request.frame());
        let seen = seen.expect(Tx, &[("cs_handover_again", 1)]);
        let message = sent(&node, &seen);
        assert_eq!(message.to, ds(0));
        assert_eq!(message.message, handover(&connection.client, 1));
        assert_eq!(message.packet, request.packet());
    }
    connection.is_unchanged(&node, &before);

    // Once something of the response is here, it is a late copy of what its owner has.
    let ack = Segment {
        ack: connection.ack + 1,
        ..connection.empty()
    };
    node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    let seen = node.run(&request.frame()).expect(Tx, &forwarded(&request));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(1));
}

/// With more behind it, it is the same request, but what follows is not known.
#[test]
fn the_request_sent_again_with_more() {
    let node = Node::cs();
    routes_by_name(&node);
    let (connection, request) = Connection::handed_over(&node);
    let more = [&request.payload[..], b"more"].concat();
    let again = request.payload(more);
    let counted: Counted<'_> = &[("cs_handover_again", 1), ("cs_pinned", 1)];
    let seen = node.run(&again.frame()).expect(Tx, counted);
    let message = sent(&node, &seen);
    assert_eq!(message.to, ds(0));
    assert_eq!(message.message, handover(&connection.client, 1));
    assert_eq!(message.packet, again.packet());
}

/// What follows a request that is on its way must not be there before it: the same way, around.
#[test]
fn what_follows_goes_the_same_way() {
    let node = Node::cs();
    routes_by_name(&node);
    let followers: [(&str, fn(&Connection) -> Segment, Counted<'_>); 4] = [
        (
            "an ACK",
            |connection| connection.empty(),
            &[("cs_queued", 1)],
        ),
        (
            "more data",
            |connection| connection.data("more"),
            &[("cs_pinned", 1), ("cs_queued", 1)],
        ),
        (
            "FIN",
            |connection| connection.empty().flags("FA"),
            &[("cs_fin", 1), ("cs_queued", 1)],
        ),
        (
            "RST",
            |connection| connection.empty().flags("R"),
            &[("cs_queued", 1), ("cs_rst", 1)],
        ),
    ];
    for (name, follower, counted) in followers {
        let (connection, _) = Connection::handed_over(&node);
        let packet = follower(&connection);
        let seen = node.run(&packet.frame());
        seen.check(Tx, counted)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let message = sent(&node, &seen);
        assert_eq!((message.from, message.to), (CS, ds(0)), "{name}");
        assert_eq!(message.message, forward_to(&connection.client, 1), "{name}");
        assert_eq!(message.packet, packet.packet(), "{name}");
    }
}

/// It goes there by itself, and may come too early; LCCP cannot carry it.
#[test]
fn what_follows_and_does_not_fit() {
    let node = Node::cs();
    routes_by_name(&node);
    let (connection, _) = Connection::handed_over(&node);
    let packet = connection.data(vec![b'x'; 1400]);
    let counted = forwarded_and("cs_pinned", &packet);
    let seen = node.run(&packet.frame()).expect(Tx, &counted);
    assert_eq!(seen.packet().ethernet.destination, ds_mac(1));
}

/// When nobody is left who had it before, the next may adopt it right away.
#[test]
fn the_previous_owner_is_gone() {
    let node = Node::cs();
    routes_by_name(&node);
    let (connection, request) = Connection::handed_over(&node);
    node.plane()
        .set_data_server(0, &DataServer::default())
        .unwrap();
    let seen = node.run(&request.frame());
    let message = sent(&node, &seen.expect(Tx, &[("cs_adopt_again", 1)]));
    assert_eq!(message.to, ds(1));
    assert_eq!(message.message, adopt(&connection.client));
    let ack = connection.empty();
    let seen = node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(1));
}

/// Nobody could give the connection away: the client is told.
#[test]
fn the_owner_is_gone() {
    let node = Node::cs();
    routes_by_name(&node);
    let connection = Connection::answered(&node);
    node.plane()
        .set_data_server(0, &DataServer::default())
        .unwrap();
    let request = connection.data(get("/ds2/"));
    let counted: Counted<'_> = &[("cs_owner_gone", 1), ("cs_request", 1), ("cs_unmoved", 1)];
    let seen = node.run(&request.frame()).expect(Tx, counted);
    assert_eq!(seen.packet().tcp().unwrap().flags(), "R");
    assert!(node.tcb(&connection.client).is_none());
}

/// Nobody there to take it: the owner answers what it can.
#[test]
fn the_next_is_gone() {
    let node = Node::cs();
    routes_by_name(&node);
    let mut connection = Connection::answered(&node);
    node.plane()
        .set_data_server(1, &DataServer::default())
        .unwrap();
    let request = connection.data(get("/ds2/"));
    let mut counted = forwarded_and("cs_request", &request);
    counted.push(("cs_unmoved", 1));
    let seen = connection.send(&node, &request).expect(Tx, &counted);
    assert_eq!(seen.packet().ethernet.destination, ds_mac(0));
    // The next request is another chance.
    node.plane().set_data_server(1, &data_server(1)).unwrap();
    connection.ack += ANSWER;
    let request = connection.data(get("/ds2/"));
    connection.send(&node, &request).expect(Tx, MOVED);
}

/// HANDOVER reaches any owner; where the next one is, is the owner's to know.
#[test]
fn where_the_owner_and_the_next_are() {
    let places: [(&str, fn(&mut DataServer), Verdict); 4] = [
        ("on this LAN", |_| (), Tx),
        (
            "behind a router",
            |server| server.flags = (DATA_SERVER_PRESENT | DATA_SERVER_ROUTED) as u8,
            Tx,
        ),
        (
            "on another interface",
            |server| server.ifindex = 77,
            Redirect,
        ),
        (
            "here",
            |server| server.flags = (DATA_SERVER_PRESENT | DATA_SERVER_LOCAL) as u8,
            Pass,
        ),
    ];
    for (owner, place_owner, verdict) in places {
        for (next, place_next, _) in places {
            let node = Node::cs();
            routes_by_name(&node);
            let mut connection = Connection::answered(&node);
            for (index, place) in [(0, place_owner), (1, place_next)] {
                let mut server = data_server(index);
                place(&mut server);
                node.plane().set_data_server(index, &server).unwrap();
            }
            let request = connection.data(get("/ds2/"));
            let check = |seen: &crate::node::Seen, counted, message: Message| {
                seen.check(verdict, counted)
                    .unwrap_or_else(|error| panic!("{owner}, to {next}: {error}"));
                let found = sent(&node, seen);
                assert_eq!((found.to, &found.message), (ds(0), &message));
            };
            let client = connection.client;
            let seen = connection.send(&node, &request);
            check(&seen, MOVED, handover(&client, 1));
            let seen = node.run(&request.frame());
            check(&seen, &[("cs_handover_again", 1)], handover(&client, 1));
            let seen = node.run(&connection.empty().frame());
            check(&seen, &[("cs_queued", 1)], forward_to(&client, 1));
        }
    }
}
