//! NONE: this node's data server does not have the connection of a packet, for whatever reason.

use super::entry::{HERE, NOBODY, both, enter, from_self, owners};
use crate::prelude::*;

const NONE: Counted<'_> = &[("cs_none", 1), ("ds_none", 1)];

/// The counters that a forwarded packet moves before the NONE about it comes back.
fn forwarded(packet: &Segment) -> Vec<(&'static str, u64)> {
    let bytes = packet.packet().len() as u64;
    vec![("cs_forward", 1), ("cs_forward_bytes", bytes)]
}

/// NONE from this node's own data server removes the entry, and no other data server is asked. The client's next
/// packet is claimed, because it finds no entry. The entry stays only if the adoption of its connection may be about
/// to come.
#[test]
fn its_entry_goes() {
    let _host = own_host();
    let node = both();
    for (payload, is_adopting) in [(&b""[..], false), (b"x", false), (b"", true)] {
        let client = Client::fresh();
        enter(&node, &client, &client.get(7), HERE, NOBODY);
        // A packet that acknowledges something shows that some data server has the request.
        let acknowledged = if is_adopting { 0 } else { 100 };
        let ack = client.later(7, GET.len(), acknowledged).payload(payload);
        let counted = [forwarded(&ack), NONE.to_vec()].concat();
        node.run(&ack.frame()).expect(Drop, &counted);
        assert_eq!(node.tcb(&client).is_some(), is_adopting);
    }
}

/// A RST for a connection that is not here ends here: it needs no owner, and the entry stays.
#[test]
fn a_reset_ends_here() {
    let _host = own_host();
    let node = both();
    let client = Client::fresh();
    enter(&node, &client, &client.get(7), HERE, 1);
    let reset = client.later(7, GET.len(), 100).flags("RA");
    let counted = [forwarded(&reset), vec![("cs_rst", 1), ("ds_no_socket", 1)]].concat();
    node.run(&reset.frame()).expect(Drop, &counted);
    assert_eq!(owners(&node, &client), (HERE, 1));
}

#[test]
fn the_same_inside_a_message() {
    let _host = own_host();
    let node = both();
    let client = Client::fresh();
    let ack = client.later(7, GET.len(), 100);
    let frame = from_self(&node, &forward(&client), &ack.packet());
    node.run(&frame).expect(Drop, &[("ds_no_socket", 1)]);
    enter(&node, &client, &client.get(7), 1, NOBODY);
    node.run(&frame).expect(Drop, &[("ds_no_socket", 1)]);
    assert_eq!(owners(&node, &client), (1, NOBODY));

    enter(&node, &client, &client.get(7), HERE, NOBODY);
    node.run(&frame).expect(Drop, NONE);
}
