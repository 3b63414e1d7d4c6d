//! Entries that come from another connection server and may be older than their connections.

use std::collections::HashMap;

use baton_abi::{MAX_DATA_SERVERS, Tcb, TcbKey};

use crate::node::Node;

#[test]
fn the_copy_is_the_table() {
    let node = Node::fresh_cs_of(1 << 17);
    let entries = node.connection_server().entries().unwrap();
    assert!(entries.read().unwrap().is_empty());
    let all: HashMap<[u8; 16], (TcbKey, Tcb)> = (0..50_000u32).map(numbered).collect();
    let (keys, tcbs): (Vec<_>, Vec<_>) = all.values().copied().unzip();
    entries.write(&keys, &tcbs).unwrap();
    let copied = entries.read().unwrap();
    assert_eq!(copied.len(), all.len());
    for (key, tcb) in copied {
        assert_eq!(all[&key.client], (key, tcb));
        assert_eq!(entries.get(&key).unwrap(), Some(tcb));
    }
}

#[test]
fn what_indices_mean_is_copied_in_their_order() {
    let node = Node::fresh_cs();
    let copied = node
        .connection_server()
        .entries()
        .unwrap()
        .data_servers()
        .unwrap();
    assert_eq!(copied.len(), MAX_DATA_SERVERS as usize);
    for (index, copied) in (0..).zip(copied) {
        assert_eq!(copied, node.plane().data_server(index).unwrap());
    }
}

fn numbered(number: u32) -> ([u8; 16], (TcbKey, Tcb)) {
    let mut client = [0; 16];
    client[12..].copy_from_slice(&number.to_be_bytes());
    let key = TcbKey {
        client,
        be_client_port: 9,
        ..TcbKey::default()
    };
    let tcb = Tcb {
        request_seq: number,
        last_seq: number.wrapping_mul(3),
        ..Tcb::default()
    };
    (client, (key, tcb))
}
