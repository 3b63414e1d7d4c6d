//! A large upload: many of its bytes are under way at a time, and one in millions of its packets has a valid cookie
//! by chance.

use baton_abi::{TCB_FIN, Tcb};

use super::http::{Connection, forwarded, get};
use crate::prelude::*;

/// A distance in bytes that is too large to count as near.
const FAR: u32 = 1 << 20;
/// A distance in bytes that is larger than any receive window.
const TOO_FAR: u32 = 1 << 25;
const ADOPTED: Counted<'_> = &[("cs_adopt", 1)];

/// A packet that has a valid cookie, and an entry of its ports. The entry's sequence number is `behind` bytes before
/// the packet's, and its acknowledgement number `less` bytes before the packet's.
fn by_chance(node: &Node, behind: u32, less: u32) -> (Client, Tcb, Segment) {
    node.set_choices(HTTP_SERVICE, &[0, 0, 0]);
    let client = Connection::open(node, get("/")).client;
    let entry = node.tcb(&client).unwrap();
    let lucky = Client {
        isn: client.isn.wrapping_add(0x1234_5678),
        ..client
    };
    let packet = lucky.get(node.cookie(&lucky));
    let entry = Tcb {
        last_seq: packet.seq.wrapping_sub(behind),
        last_ack: packet.ack.wrapping_sub(less),
        ..entry
    };
    node.connection_server()
        .set_tcb(&node.tcb_key(&client), &entry)
        .unwrap();
    node.set_choices(HTTP_SERVICE, &[2, 2, 2]);
    (client, entry, packet)
}

/// A packet of an upload goes to the owner, whether it follows packets that this node has missed or is an old one,
/// and whatever it acknowledges.
#[test]
fn more_of_it_begins_no_connection() {
    let node = Node::fresh_cs();
    for behind in [FAR, FAR.wrapping_neg(), TOO_FAR - 1, TOO_FAR.wrapping_neg()] {
        for less in [0, 4095] {
            let (client, before, packet) = by_chance(&node, behind, less);
            node.run(&packet.frame()).expect(Tx, &forwarded(&packet));
            let entry = node.tcb(&client).unwrap();
            assert_eq!(entry.owner, before.owner, "{behind} {less}");
            let end = packet.seq.wrapping_add(packet.payload.len() as u32);
            let is_ahead = (behind as i32) > 0;
            let last = if is_ahead { end } else { before.last_seq };
            assert_eq!((entry.last_seq, entry.last_ack), (last, packet.ack));
        }
    }
}

/// A packet begins a new connection if its numbers are elsewhere, or if the client has ended the connection before.
#[test]
fn another_connection_begins() {
    for (behind, less, state) in [
        (TOO_FAR, 0, 0),
        (FAR, 4096, 0),
        (FAR, u32::MAX, 0),
        (FAR, 0, TCB_FIN),
    ] {
        let node = Node::fresh_cs();
        let (client, mut entry, packet) = by_chance(&node, behind, less);
        entry.state |= state as u8;
        node.connection_server()
            .set_tcb(&node.tcb_key(&client), &entry)
            .unwrap();
        node.run(&packet.frame()).expect(Tx, ADOPTED);
        assert_eq!(node.tcb(&client).unwrap().owner, 2, "{behind} {less}");
    }
}
