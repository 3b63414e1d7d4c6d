//! Frames that came through the switch: a client's frame inside another one.

use baton_abi::ETHER_SWITCHED;
use etherparse::EtherType;

use crate::prelude::*;

/// The switch's MAC address.
const SWITCH_MAC: [u8; 6] = [2, 0, 0, 0, 0, 254];

/// The frame that the switch makes of a client's frame.
pub fn switched(frame: &[u8]) -> Vec<u8> {
    let mut inside = frame.to_vec();
    inside[..6].copy_from_slice(&SWITCH_MAC);
    switched_by(SWITCH_MAC, CS_MAC, &inside)
}

/// Puts the frame inside another one that goes from `from` to `to`.
pub fn switched_by(from: [u8; 6], to: [u8; 6], frame: &[u8]) -> Vec<u8> {
    ethernet(from, to, EtherType(ETHER_SWITCHED as u16), frame)
}

/// An answer goes to the MAC address that the client's frame came from, from the connection server's own MAC address.
#[test]
fn a_client_is_answered_directly() {
    let node = Node::cs();
    let client = Client::fresh();
    let syn = client.syn().frame();
    let seen = node.run(&switched(&syn)).expect(Tx, &[("cs_syn", 1)]);
    let answer = seen.packet();
    assert_eq!(answer.ethernet.destination, CLIENT_MAC);
    assert_eq!(answer.ethernet.source, CS_MAC);

    let cookie = answer.tcp().unwrap().header.sequence_number;
    let get = client.get(cookie);
    let seen = node
        .run(&switched(&get.frame()))
        .expect(Tx, &[("cs_adopt", 1)]);
    let message = sent(&node, &seen);
    assert_eq!(message.message, adopt(&client));
    assert_eq!(message.packet, get.packet());
    let ack = client.later(cookie, GET.len(), 10);
    let bytes = ack.packet().len() as u64;
    let counted = [("cs_forward", 1), ("cs_forward_bytes", bytes)];
    let seen = node.run(&switched(&ack.frame())).expect(Tx, &counted);
    assert_eq!(seen.frame.len(), ack.frame().len());
    assert_eq!(seen.packet().ethernet.source, CS_MAC);
    let owner = node.tcb(&client).unwrap().owner;
    assert_eq!(seen.packet().ethernet.destination, ds_mac(owner));
}

/// A frame for another connection server passes, also if the LAN floods it here.
#[test]
fn frames_for_other_nodes() {
    let node = Node::cs();
    let mut flooded = switched(&Client::fresh().syn().frame());
    flooded[..6].copy_from_slice(&ds_mac(0));
    node.run(&flooded).expect(Pass, &[]).untouched();
}

/// A frame for the kernel is taken out of the outer one, as if it had come here by itself.
#[test]
fn what_passes_is_taken_out() {
    let node = Node::cs();
    let other = Client::of("10.77.0.101:80".parse().unwrap());
    let frame = other.syn().frame();
    let seen = node.run(&switched(&frame)).expect(Pass, &[]);
    assert_eq!(seen.frame, frame);
}

/// Only one outer frame is taken off: no client's frame is inside two others.
#[test]
fn only_one_is_taken_out() {
    let node = Node::cs();
    let twice = switched(&switched(&Client::fresh().syn().frame()));
    node.run(&twice).expect(Pass, &[]);
}

#[test]
fn cut_short() {
    let node = Node::cs();
    let whole = switched(&Client::fresh().syn().frame());
    for length in 14..28 {
        let counted = node.run(&whole[..length]).expect(Drop, &[("bad_ip", 1)]);
        drop(counted);
    }
}
