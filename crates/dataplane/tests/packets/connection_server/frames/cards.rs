//! A node with two network cards: clients and nodes are on different networks.
//!
//! In a test run every frame comes by the second card, which has the index of the only interface there is.

use baton_abi::{DATA_SERVER_LOCAL, DataServer};

use crate::{
    connection_server::{
        frames::switched::switched_by,
        http::{get, route},
    },
    prelude::*,
};

/// The index of the first interface, on whose network the clients are.
const FIRST: u32 = 7;
const FIRST_MAC: [u8; 6] = [2, 0, 0, 0, 7, 7];
/// The MAC address of another node on the network of the second interface.
const OTHER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 254];

fn with_two_cards() -> Node {
    let node = Node::cs();
    node.change(|settings| {
        settings.interfaces = 2;
        settings.macs = [FIRST_MAC, CS_MAC, FIRST_MAC, FIRST_MAC];
        settings.ifindexes = [FIRST, ARRIVES_AT, FIRST, FIRST];
    });
    node
}

/// Puts all data servers behind the first interface.
fn behind_first(node: &Node) {
    for index in 0..3 {
        let way = DataServer {
            ifindex: FIRST,
            source_mac: FIRST_MAC,
            ..data_server(index)
        };
        node.plane().set_data_server(index, &way).unwrap();
    }
}

fn addressed(frame: &[u8], to: [u8; 6]) -> Vec<u8> {
    [&to[..], &frame[6..]].concat()
}

#[test]
fn every_interface_has_an_address() {
    let node = with_two_cards();
    let syn = || Client::fresh().syn().frame();
    for mac in [FIRST_MAC, CS_MAC] {
        let seen = node.run(&addressed(&syn(), mac));
        assert_eq!(seen.packet().ethernet.source, mac);
        assert_eq!(seen.packet().ethernet.destination, CLIENT_MAC);
    }
    node.run(&addressed(&syn(), OTHER_MAC))
        .expect(Pass, &[])
        .untouched();
}

/// A client is answered by the interface that its packet came by.
#[test]
fn a_client_is_answered_where_it_is() {
    let node = with_two_cards();
    let seen = node
        .run(&Client::fresh().syn().frame())
        .expect(Tx, &[("cs_syn", 1)]);
    assert_eq!(seen.packet().ethernet.source, CS_MAC);
    assert_eq!(seen.packet().ethernet.destination, CLIENT_MAC);
}

/// A packet that comes by one interface leaves by the data server's interface, with that interface's MAC address.
#[test]
fn a_request_leaves_by_another_interface() {
    let node = with_two_cards();
    behind_first(&node);
    let client = Client::fresh();
    let cookie = node.cookie(&client);
    let get = client.get(cookie);
    let seen = node.run(&get.frame()).expect(Redirect, &[("cs_adopt", 1)]);
    assert_eq!(seen.packet().ethernet.source, FIRST_MAC);
    assert_eq!(sent(&node, &seen).message, adopt(&client));
    let ack = client.later(cookie, GET.len(), 10);
    let bytes = ack.packet().len() as u64;
    let counted = [("cs_forward", 1), ("cs_forward_bytes", bytes)];
    let seen = node.run(&ack.frame()).expect(Redirect, &counted);
    let owner = node.tcb(&client).unwrap().owner;
    assert_eq!(seen.packet().ethernet.source, FIRST_MAC);
    assert_eq!(seen.packet().ethernet.destination, ds_mac(owner));
}

/// A frame that another node passes on comes by the second interface, but the client is on the network of the first.
#[test]
fn a_client_is_answered_by_the_first_interface_if_its_frame_was_passed_on() {
    let node = with_two_cards();
    let client = Client::fresh();
    let passed_on = |frame: &[u8]| switched_by(OTHER_MAC, CS_MAC, frame);
    let seen = node
        .run(&passed_on(&client.syn().frame()))
        .expect(Redirect, &[("cs_syn", 1)]);
    let answer = seen.packet();
    assert_eq!(answer.ethernet.source, FIRST_MAC);
    assert_eq!(answer.ethernet.destination, CLIENT_MAC);

    // A packet for a data server leaves by the interface behind which the data server is.
    let cookie = answer.tcp().unwrap().header.sequence_number;
    let seen = node
        .run(&passed_on(&client.get(cookie).frame()))
        .expect(Tx, &[("cs_adopt", 1)]);
    assert_eq!(seen.packet().ethernet.source, CS_MAC);

    // With only one interface, the answer leaves by that one.
    node.change(|settings| settings.interfaces = 1);
    let seen = node
        .run(&passed_on(&Client::fresh().syn().frame()))
        .expect(Tx, &[("cs_syn", 1)]);
    assert_eq!(seen.packet().ethernet.source, CS_MAC);
}

/// A packet for this node's own data server gets the MAC address of the interface that it came by, because the kernel
/// takes no other.
#[test]
fn the_data_server_of_the_node_itself_is_reached_by_any_interface() {
    let node = with_two_cards();
    let local = |index| DataServer {
        mac: FIRST_MAC,
        source_mac: FIRST_MAC,
        ifindex: FIRST,
        flags: data_server(index).flags | DATA_SERVER_LOCAL as u8,
        ..data_server(index)
    };
    for index in 0..3 {
        node.plane().set_data_server(index, &local(index)).unwrap();
    }
    let client = Client::fresh();
    let get = client.get(node.cookie(&client));
    let seen = node.run(&get.frame()).expect(Pass, &[("cs_adopt", 1)]);
    assert_eq!(seen.packet().ethernet.destination, CS_MAC);
    assert_eq!(seen.packet().ethernet.source, FIRST_MAC);
}

/// The RST to a client leaves by the first interface, too, if the request was passed on by another node.
#[test]
fn nobody_is_there() {
    let node = with_two_cards();
    // Pool 2 has no choices.
    node.routing()
        .set_routes(&[(route(0, "/nobody/"), 2)])
        .unwrap();
    for inside in [false, true] {
        let client = Client::of(HTTP);
        let request = client.get(node.cookie(&client)).payload(get("/nobody/"));
        let frame = match inside {
            true => switched_by(OTHER_MAC, CS_MAC, &request.frame()),
            false => request.frame(),
        };
        let (verdict, source) = match inside {
            true => (Redirect, FIRST_MAC),
            false => (Tx, CS_MAC),
        };
        let seen = node
            .run(&frame)
            .expect(verdict, &[("cs_no_data_server", 1)]);
        assert_eq!(seen.packet().ethernet.source, source);
        assert_eq!(seen.packet().ethernet.destination, CLIENT_MAC);
    }
}
