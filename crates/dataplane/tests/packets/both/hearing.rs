//! A node of both roles concludes from other connection servers' messages, never from its own, that it is not cut
//! off.

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};

use super::entry::{both, from_ds, from_self};
use crate::prelude::*;

/// The first word of `struct hearing`: the time at which a connection server was last heard.
fn heard(hearings: &MapHandle) -> u32 {
    let found = hearings.lookup(&[0; 4], MapFlags::ANY).unwrap().unwrap();
    u32::from_ne_bytes(found[..4].try_into().unwrap())
}

/// Tells the node that data server 1 is a connection server, too.
fn know_another(node: &Node) {
    let mut keys = node.plane().peer_keys().unwrap();
    keys.get_mut(&ds(1)).unwrap().is_cs = 1;
    node.plane().set_peer_keys(&keys).unwrap();
}

#[test]
fn it_hears_the_others_and_not_itself() {
    const LONG_AGO: u32 = 1;
    let node = both();
    know_another(&node);
    node.change(|settings| settings.lease = 1000);
    let hearings = map_named(node.plane(), "hearings");
    let client = Client::fresh();
    let (message, packet) = (forward(&client), client.later(1, 1, 1).packet());
    for (frame, is_heard) in [
        (from_self(&node, &message, &packet), false),
        (from_ds(2, &node, &message, &packet), false),
        (from_ds(1, &node, &message, &packet), true),
    ] {
        let long_ago = [LONG_AGO.to_ne_bytes(), [0; 4]].concat();
        hearings.update(&[0; 4], &long_ago, MapFlags::ANY).unwrap();
        node.run(&frame);
        assert_eq!(heard(&hearings) != LONG_AGO, is_heard);
    }
}
