//! Connections of a both-role node as its connection server knows them, and messages to itself.

use baton_abi::{LCCP_TCB_SACK, LCCP_TCB_WSCALE, NO_DATA_SERVER, TCB_ADOPTING, TCB_WAITING, Tcb};
use baton_wire::{Message, NodePair, encode};
use etherparse::{EtherType, IpNumber};

use crate::prelude::*;

/// The index of this node as a data server.
pub const HERE: u16 = 0;
pub const NOBODY: u16 = NO_DATA_SERVER as u16;

/// A both-role node that knows the ways to two other data servers.
pub fn both() -> Node {
    let node = Node::both();
    for index in [1, 2] {
        let way = peer(ds_mac(index));
        node.data_server().set_peer(ds(index), &way).unwrap();
    }
    node
}

/// Makes an entry for a connection whose current request begins at `first` and was handed from `previous` to `owner`.
pub fn enter(node: &Node, client: &Client, first: &Segment, owner: u16, previous: u16) {
    let tcb = Tcb {
        request_seq: first.seq,
        last_seq: first.seq.wrapping_add(first.payload.len() as u32),
        last_ack: first.ack,
        owner,
        previous,
        mss: 1460,
        snd_wscale: 7,
        rcv_wscale: WINDOW_SCALE,
        options: (LCCP_TCB_SACK | LCCP_TCB_WSCALE) as u8,
        state: (TCB_ADOPTING | TCB_WAITING) as u8,
        ..Tcb::default()
    };
    node.connection_server()
        .set_tcb(&node.tcb_key(client), &tcb)
        .unwrap();
}

/// The entry's owner and the owner before that one.
#[track_caller]
pub fn owners(node: &Node, client: &Client) -> (u16, u16) {
    let tcb = node.tcb(client).unwrap();
    (tcb.owner, tcb.previous)
}

/// A frame from another data server to this node.
pub fn from_ds(index: u16, node: &Node, message: &Message, packet: &[u8]) -> Vec<u8> {
    let body = encode(
        message,
        packet,
        node.now(),
        &key().lccp(),
        to_cs_from(index),
    );
    let packet = ip_packet(IpNumber(253), ds(index), CS, &body);
    ethernet(ds_mac(index), CS_MAC, EtherType::IPV4, &packet)
}

/// A frame from this node's connection server to its own data server. Such a frame never travels on a wire.
pub fn from_self(node: &Node, message: &Message, packet: &[u8]) -> Vec<u8> {
    let pair = NodePair { from: CS, to: CS };
    let body = encode(message, packet, node.now(), &key().lccp(), pair);
    let packet = ip_packet(IpNumber(253), CS, CS, &body);
    ethernet(CS_MAC, CS_MAC, EtherType::IPV4, &packet)
}
