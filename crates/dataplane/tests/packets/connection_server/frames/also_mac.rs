//! MAC addresses that a node has besides its interface's own: those of VRRP, a macvlan or a bridge.

use crate::prelude::*;

const VIRTUAL: [u8; 6] = [0, 0, 0x5e, 0, 1, 10];
const BRIDGE: [u8; 6] = [2, 9, 9, 9, 9, 9];

fn with(node: Node, macs: &[[u8; 6]]) -> Node {
    node.change(|settings| {
        settings.also_macs = macs.len() as u8;
        settings.also_mac[..macs.len()].copy_from_slice(macs);
    });
    node
}

/// The answer to a client comes from the MAC address that the client sent to. Messages to other nodes come from the
/// interface's own.
#[test]
fn a_client_is_answered_by_whom_it_asked() {
    let node = with(Node::cs(), &[VIRTUAL, BRIDGE]);
    for mac in [VIRTUAL, BRIDGE, CS_MAC] {
        let client = Client::fresh();
        let to = |frame: Vec<u8>| patched(frame, 0, &mac);
        let seen = node.run(&to(client.syn().frame()));
        let answer = seen.expect(Tx, &[("cs_syn", 1)]).packet();
        assert_eq!(answer.ethernet.source, mac);
        assert_eq!(answer.ethernet.destination, CLIENT_MAC);

        let cookie = answer.tcp().unwrap().header.sequence_number;
        let get = client.get(cookie);
        let seen = node.run(&to(get.frame())).expect(Tx, &[("cs_adopt", 1)]);
        assert_eq!(seen.packet().ethernet.source, CS_MAC);
        assert_eq!(sent(&node, &seen).packet, get.packet());

        let ack = client.later(cookie, GET.len(), 10);
        let bytes = ack.packet().len() as u64;
        let counted = [("cs_forward", 1), ("cs_forward_bytes", bytes)];
        let seen = node.run(&to(ack.frame())).expect(Tx, &counted);
        assert_eq!(seen.packet().ethernet.source, CS_MAC);
        let owner = node.tcb(&client).unwrap().owner;
        assert_eq!(seen.packet().ethernet.destination, ds_mac(owner));
    }
}

#[test]
fn all_others_are_for_others() {
    let client = Client::fresh();
    for macs in [&[][..], &[VIRTUAL], &[VIRTUAL, BRIDGE, CLIENT_MAC, VIRTUAL]] {
        let node = with(Node::cs(), macs);
        for other in [
            [0, 0, 0x5e, 0, 1, 11],
            [0, 0, 0x5e, 0, 2, 10],
            [2, 9, 9, 9, 9, 8],
            [0; 6],
            [0xff; 6],
        ] {
            let frame = patched(client.syn().frame(), 0, &other);
            node.run(&frame).expect(Pass, &[]).untouched();
        }
    }
    // Frames to a MAC address that is no longer listed are not looked at.
    let node = with(Node::cs(), &[VIRTUAL, BRIDGE]);
    node.change(|settings| settings.also_macs = 1);
    let frame = patched(client.syn().frame(), 0, &BRIDGE);
    node.run(&frame).expect(Pass, &[]).untouched();
}

#[test]
fn what_is_malformed_is_so_for_each() {
    let node = with(Node::cs(), &[VIRTUAL]);
    let lying = patched(Client::of(WEB).get(7).frame(), 14 + 2, &[0x7f, 0xff]);
    node.run(&patched(lying, 0, &VIRTUAL))
        .expect(Drop, &[("bad_ip", 1)]);
}

#[test]
fn at_the_switch() {
    let node = with(Node::switch(), &[VIRTUAL]);
    let frame = patched(Client::fresh().syn().frame(), 0, &VIRTUAL);
    let seen = node.run(&frame).expect(Tx, &[("switch_syn", 1)]);
    assert_eq!(seen.frame[14..], frame);
    let frame = patched(frame, 0, &BRIDGE);
    node.run(&frame).expect(Pass, &[]).untouched();
}
