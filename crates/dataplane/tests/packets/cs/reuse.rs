//! SYN on a known flow: a new connection on old ports, or a forgery. The old one must survive the
//! second and give way to the first.

use baton_abi::TCB_DOUBT;

use super::forward::adopted;
use crate::{
    lccp::sent,
    node::{Counted, Drop, Node, Tx},
    segment::{Client, GET},
};

#[test]
fn the_port_is_used_again() {
    let node = Node::cs();
    let (old, _) = adopted(&node);
    let new = old.again();
    let cookie = node.cookie(&new);
    assert_eq!(u32::from(node.tcb(&old).unwrap().state), TCB_DOUBT);
    node.run(&new.ack(cookie).frame())
        .expect(Drop, &[("cs_handshake_ack", 1)]);

    node.set_choices(0, &[2, 2, 2]);
    let get = new.get(cookie);
    let seen = node.run(&get.frame()).expect(Tx, &[("cs_adopt", 1)]);
    assert_eq!(sent(&node, &seen).packet, get.packet());
    let entry = node.tcb(&new).unwrap();
    assert_eq!((entry.owner, entry.state), (2, 0));
    assert_eq!((entry.adopt_seq, entry.adopt_ack), (get.seq, get.ack));

    let ack = new.later(cookie, GET.len(), 10);
    node.run(&ack.frame())
        .expect(Tx, forwarded(&ack.packet()).as_slice());
}

#[test]
fn a_forged_syn_harms_nobody() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    node.run(&client.again().syn().frame())
        .expect(Tx, &[("cs_syn", 1)]);
    for packet in [
        client.later(cookie, GET.len(), 1000),
        client
            .later(cookie, GET.len(), 1000)
            .flags("PA")
            .payload(GET),
        client.later(cookie, 2 * GET.len(), 2000),
    ] {
        node.run(&packet.frame())
            .expect(Tx, forwarded(&packet.packet()).as_slice());
    }
    assert_eq!(node.tcb(&client).unwrap().owner, 0);
}

/// The client's own SYN, late or repeated, and then its request again: nothing is new.
#[test]
fn the_same_syn_again() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    assert_eq!(node.cookie(&client), cookie);
    node.set_choices(0, &[1, 1, 1]);
    node.run(&client.get(cookie).frame())
        .expect(Tx, &[("cs_adopt_again", 1)]);
    assert_eq!(node.tcb(&client).unwrap().owner, 0);
}

#[test]
fn an_old_fin_and_rst_in_doubt_are_forwarded() {
    let node = Node::cs();
    for (flags, counter) in [("FA", "cs_fin"), ("R", "cs_rst"), ("RA", "cs_rst")] {
        let (client, cookie) = adopted(&node);
        node.run(&client.again().syn().frame())
            .expect(Tx, &[("cs_syn", 1)]);
        let packet = client.later(cookie, GET.len(), 1000).flags(flags);
        let mut counted = forwarded(&packet.packet());
        counted.push((counter, 1));
        node.run(&packet.frame()).expect(Tx, &counted);
    }
}

/// After RST, a SYN and a request: as quick clients do.
#[test]
fn reset_and_at_once_again() {
    let node = Node::cs();
    let (old, cookie) = adopted(&node);
    node.run(&old.later(cookie, GET.len(), 1000).flags("RA").frame());
    let new = old.again();
    let cookie = node.cookie(&new);
    const ADOPTED: Counted<'_> = &[("cs_adopt", 1)];
    node.run(&new.get(cookie).frame()).expect(Tx, ADOPTED);
    assert_eq!(node.tcb(&new).unwrap().state, 0);
}

/// A SYN that gets no answer casts no doubt.
#[test]
fn a_bad_syn_casts_no_doubt() {
    let node = Node::cs();
    for flags in ["SA", "SF", "SR"] {
        let (client, _) = adopted(&node);
        let bad = client.again().syn().flags(flags);
        node.run(&bad.frame()).expect(Drop, &[("bad_tcp", 1)]);
        assert_eq!(node.tcb(&client).unwrap().state, 0, "{flags}");
    }
}

/// The cookie alone does not help whoever cannot see our SYN-ACKs.
#[test]
fn a_guessed_request_changes_nothing() {
    let node = Node::cs();
    let (client, _) = adopted(&node);
    let forged: Client = client.again();
    node.run(&forged.syn().frame()).expect(Tx, &[("cs_syn", 1)]);
    let guess = forged.get(0x0123_4567);
    node.run(&guess.frame())
        .expect(Tx, forwarded(&guess.packet()).as_slice());
    assert_eq!(node.tcb(&client).unwrap().owner, 0);
}

fn forwarded(packet: &[u8]) -> Vec<(&'static str, u64)> {
    vec![("cs_forward", 1), ("cs_forward_bytes", packet.len() as u64)]
}
