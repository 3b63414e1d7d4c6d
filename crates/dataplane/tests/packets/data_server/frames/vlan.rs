//! VLAN frames on the interface below: the program leaves them to the kernel.

use baton_net::{Link, PacketSocket};
use nix::net::if_::if_nametoindex;

use crate::prelude::*;

/// Returns the frame in a VLAN, with the tag in the frame's own bytes.
fn tagged(frame: &[u8], ether_type: u16, vlan: u16) -> Vec<u8> {
    let tag = [ether_type.to_be_bytes(), vlan.to_be_bytes()].concat();
    [&frame[..12], &tag, &frame[12..]].concat()
}

#[test]
fn tagged_frames_are_the_kernels() {
    let _host = own_host();
    let arrives = if_nametoindex("nobody").unwrap();
    let node = Node::attached_ds(arrives);
    let client = Client::fresh();
    let message = to_ds(&adopt(&client), node.now(), &client.get(7).packet());
    let link = Link {
        index: if_nametoindex("clients").unwrap(),
        name: "clients".into(),
        mac: [0; 6],
        mtu: 1500,
        up: true,
    };
    let wire = PacketSocket::open(&link).unwrap();
    for frame in [client.syn().frame(), message] {
        for (ether_type, vlan) in [(0x8100, 10), (0x8100, 4094), (0x88a8, 10)] {
            wire.send(&tagged(&frame, ether_type, vlan)).unwrap();
        }
        let inner = tagged(&frame, 0x8100, 20);
        wire.send(&tagged(&inner, 0x88a8, 10)).unwrap();
    }
    // A switch sends a frame to all hosts if it does not know for which one it is. The kernel does not take such a
    // frame.
    wire.send(&client.syn().frame()).unwrap();
    // The program looks only at frames that are for this host and have no tag.
    let mut frame = client.syn().frame();
    frame[..6].fill(0xff);
    wire.send(&frame).unwrap();
    node.expect(&[("ds_no_socket", 1)]);
}
