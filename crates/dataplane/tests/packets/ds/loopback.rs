//! The program attached to the loopback of a private namespace, and messages sent through it.

use std::{
    collections::BTreeMap,
    io::Read as _,
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use baton_wire::{Message, encode};

use crate::{
    cluster::{ARRIVES_AT, CLUSTER, WEB, key},
    host::{accept, send_lccp},
    lccp::{adopt, flow},
    node::{Counted, Node},
    segment::{Client, Segment},
};

pub const ADOPTED: Counted<'_> = &[("ds_adopted", 1)];
pub const FORWARDED: Counted<'_> = &[("ds_delivered", 1), ("ds_forwarded", 1)];
/// The connection server's cookie.
pub const COOKIE: u32 = 0xfeed_0001;

/// The namespace's loopback with the program on it.
pub fn attached() -> Node {
    let node = Node::attached_ds(ARRIVES_AT);
    assert_eq!(*WEB.ip(), CLUSTER);
    node
}

pub fn adopted(node: &Node, listener: &TcpListener, client: &Client) -> TcpStream {
    send_adopt(node, &client.get(COOKIE));
    let (stream, from) = accept(listener);
    assert_eq!(from, SocketAddr::V4(client.address));
    expect(node, ADOPTED);
    stream
}

pub fn send_adopt(node: &Node, packet: &Segment) {
    let client = Client {
        address: packet.from,
        service: packet.to,
        isn: 0,
    };
    send(node, &adopt(&client), packet);
}

pub fn forward(node: &Node, packet: &Segment) {
    let client = Client {
        address: packet.from,
        service: packet.to,
        isn: 0,
    };
    let flow = flow(&client);
    send(node, &Message::Forward { flow }, packet);
}

pub fn send(node: &Node, message: &Message, packet: &Segment) {
    let bytes = encode(message, node.now(), &key().lccp());
    send_lccp(&[bytes, packet.packet()].concat());
}

/// Exactly these counters have moved since the last look; packets may still be on their way.
#[track_caller]
pub fn expect(node: &Node, counted: Counted<'_>) {
    let until = Instant::now() + Duration::from_secs(5);
    let mut moved = node.moved();
    let expected = |moved: &BTreeMap<String, u64>| {
        moved.len() == counted.len()
            && counted
                .iter()
                .all(|(name, by)| moved.get(*name) == Some(by))
    };
    while !expected(&moved) && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
        moved = node.moved();
    }
    assert!(expected(&moved), "expected {counted:?}, saw {moved:?}");
    node.look();
}

pub fn expect_bytes(mut stream: &TcpStream, expected: &[u8]) {
    let mut bytes = vec![0; expected.len()];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(bytes, expected);
}
