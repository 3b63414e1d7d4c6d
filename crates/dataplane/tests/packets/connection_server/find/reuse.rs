//! Packets for ports that have an entry, with numbers far from those of the entry: of a new connection on old ports,
//! of the old connection after a jump, or forged. Only a new connection replaces the old one.

use baton_abi::{TCB_ADOPTING, TCB_FIN, TCB_RST, TCB_WAITING, Tcb};

use crate::{connection_server::forward::adopted, prelude::*};

/// The state of an entry whose request is with a data server that has not answered yet.
const FRESH: u8 = (TCB_ADOPTING | TCB_WAITING) as u8;

#[test]
fn the_port_is_used_again() {
    let node = Node::cs();
    let (old, _) = adopted(&node);
    let new = old.again();
    let before = node.tcb(&old).unwrap();
    let cookie = node.cookie(&new);
    assert_eq!(node.tcb(&old), Some(before), "a SYN leaves the entry alone");
    node.run(&new.ack(cookie).frame())
        .expect(Drop, &[("cs_handshake_ack", 1)]);

    node.set_choices(0, &[2, 2, 2]);
    let get = new.get(cookie);
    let seen = node.run(&get.frame()).expect(Tx, &[("cs_adopt", 1)]);
    assert_eq!(sent(&node, &seen).packet, get.packet());
    let entry = node.tcb(&new).unwrap();
    assert_eq!((entry.owner, entry.state), (2, FRESH));
    assert_eq!((entry.request_seq, entry.last_ack), (get.seq, get.ack));

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

/// The client's own SYN comes again, late or repeated, and then its request: the connection stays the same.
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
fn an_old_fin_and_rst_after_a_syn_are_forwarded() {
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

/// A SYN and a request follow a RST at once, as quick clients send them.
#[test]
fn reset_and_at_once_again() {
    let node = Node::cs();
    let (old, cookie) = adopted(&node);
    node.run(&old.later(cookie, GET.len(), 1000).flags("RA").frame());
    let new = old.again();
    let cookie = node.cookie(&new);
    const ADOPTED: Counted<'_> = &[("cs_adopt", 1)];
    node.run(&new.get(cookie).frame()).expect(Tx, ADOPTED);
    assert_eq!(node.tcb(&new).unwrap().state, FRESH);
}

/// The client has ended the old connection, and its next connection has numbers that are near by chance.
#[test]
fn numbers_near_those_of_an_ended_connection() {
    for end in ["FA", "RA"] {
        let node = Node::cs();
        let (old, old_cookie) = adopted(&node);
        let fin = old.later(old_cookie, GET.len(), 1000).flags(end);
        node.run(&fin.frame());
        let isn = fin.seq.wrapping_add(1000);
        let new = Client { isn, ..old };
        let cookie = node.cookie(&new);
        let near = Tcb {
            last_ack: cookie.wrapping_sub(1000),
            ..node.tcb(&old).unwrap()
        };
        let key = node.tcb_key(&old);
        // The old connection's last acknowledgement is forwarded. So is a packet without a valid cookie, because the
        // FIN or RST before it may have been forged.
        let last = Segment {
            seq: fin.seq.wrapping_add(1),
            ack: near.last_ack,
            ..fin.clone().flags("A")
        };
        for packet in [last, new.get(cookie.wrapping_add(1))] {
            node.connection_server().set_tcb(&key, &near).unwrap();
            node.run(&packet.frame())
                .expect(Tx, forwarded(&packet.packet()).as_slice());
        }
        node.connection_server().set_tcb(&key, &near).unwrap();
        node.run(&new.ack(cookie).frame())
            .expect(Drop, &[("cs_handshake_ack", 1)]);
        let get = new.get(cookie);
        node.run(&get.frame()).expect(Tx, &[("cs_adopt", 1)]);
        assert_eq!(node.tcb(&new).unwrap().request_seq, get.seq);
    }
}

/// After lost packets a connection goes on far from where its entry saw it last.
#[test]
fn a_jump_is_followed() {
    let node = Node::cs();
    for (sent, acked) in [(1 << 26, 0), (0, 0x20_0000), (1 << 30, 1 << 30)] {
        let (client, cookie) = adopted(&node);
        let before = node.tcb(&client).unwrap();
        // Of an acknowledgement that jumps, only one with the very next sequence number is believed.
        let believed = if sent == 0 { acked } else { 0 };
        for (packet, is_jump) in [
            (client.later(cookie, GET.len() + sent, acked), sent > 0),
            (client.later(cookie, GET.len() + (1 << 29), acked), true),
            (
                client.later(cookie, GET.len() + (1 << 29), 0).flags("R"),
                true,
            ),
            (
                client.later(cookie, GET.len() + (1 << 29), 0).flags("FA"),
                true,
            ),
        ] {
            let mut counted = forwarded(&packet.packet());
            if is_jump {
                counted.push(("cs_jump", 1));
            }
            node.run(&packet.frame()).expect(Tx, &counted);
        }
        let entry = node.tcb(&client).unwrap();
        let last_ack = before.last_ack.wrapping_add(believed);
        assert_eq!(
            (entry.last_seq, entry.last_ack),
            (before.last_seq, last_ack)
        );
        assert_eq!(u32::from(entry.state) & (TCB_FIN | TCB_RST), 0);
    }
}

/// The old connection's FIN comes after the new one has begun, and does not end the new one.
#[test]
fn a_late_fin_of_the_old_connection_leaves_the_new_one() {
    let node = Node::cs();
    let (old, old_cookie) = adopted(&node);
    let new = old.again();
    let cookie = node.cookie(&new);
    node.set_choices(0, &[2, 2, 2]);
    node.run(&new.get(cookie).frame())
        .expect(Tx, &[("cs_adopt", 1)]);
    let late = old.later(old_cookie, GET.len(), 1000).flags("FA");
    let mut counted = forwarded(&late.packet());
    counted.push(("cs_jump", 1));
    node.run(&late.frame()).expect(Tx, &counted);
    let ack = new.later(cookie, GET.len(), 10);
    node.run(&ack.frame())
        .expect(Tx, forwarded(&ack.packet()).as_slice());
    let entry = node.tcb(&new).unwrap();
    assert_eq!((entry.owner, u32::from(entry.state)), (2, 0));
    assert_eq!(entry.last_ack, ack.ack);
}

/// A request with a guessed cookie changes nothing: a sender that cannot see the SYN-ACKs does not know the cookie.
#[test]
fn a_guessed_request_changes_nothing() {
    let node = Node::cs();
    let (client, _) = adopted(&node);
    let forged: Client = client.again();
    node.run(&forged.syn().frame()).expect(Tx, &[("cs_syn", 1)]);
    let guess = forged.get(0x0123_4567);
    let mut counted = forwarded(&guess.packet());
    counted.push(("cs_jump", 1));
    node.run(&guess.frame()).expect(Tx, &counted);
    assert_eq!(node.tcb(&client).unwrap().owner, 0);
}

fn forwarded(packet: &[u8]) -> Vec<(&'static str, u64)> {
    vec![("cs_forward", 1), ("cs_forward_bytes", packet.len() as u64)]
}
