//! Frames cut at every byte are counted by name or passed to the kernel. The program never crashes, and never returns
//! XDP_ABORTED.

use std::collections::BTreeSet;

use crate::{connection_server::forward::adopted, prelude::*};
use baton_wire::Refusal;

/// The shortest frame that a test run takes: an Ethernet header.
const SHORTEST: usize = 14;
/// In a shorter frame the IP header is not whole, so the frame does not count as IPv4 for this node.
const IP_HEADER_ENDS: usize = IP + 20;

#[test]
fn a_syn() {
    let node = Node::cs();
    let syn = Client::fresh()
        .syn()
        .ip_options([1; 8])
        .payload("0123")
        .frame();
    cut_everywhere(&node, &syn);
}

#[test]
fn a_first_request() {
    let node = Node::cs();
    let client = Client::fresh();
    let get = client.get(node.cookie(&client)).frame();
    cut_everywhere(&node, &get);
    assert!(node.tcb(&client).is_none());
}

#[test]
fn a_packet_of_a_known_connection() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    cut_everywhere(
        &node,
        &client.later(cookie, 100, 100).payload("more").frame(),
    );
}

#[test]
fn a_refused() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    let message = refused(&client, linux_tcb(), Refusal::NoListener);
    let packet = client.get(cookie).packet();
    let frame = to_cs(0, &message, node.now(), &key().lccp(), &packet);
    // The message is for no cluster address, so the kernel judges it if it is not whole.
    for length in SHORTEST..frame.len() {
        node.run(&frame[..length]).expect(Pass, &[]).untouched();
    }
    assert_eq!(node.tcb(&client).unwrap().owner, 0);
}

/// The frame is cut, and the length in its IP header is corrected to match.
#[test]
fn shorter_packets_that_do_not_lie() {
    let node = Node::cs();
    let client = Client::fresh();
    let get = client.get(node.cookie(&client)).frame();
    let mut seen_counters = BTreeSet::new();
    for length in IP_HEADER_ENDS..get.len() {
        let mut frame = get[..length].to_vec();
        let total = (length - IP) as u16;
        frame[IP + 2..IP + 4].copy_from_slice(&total.to_be_bytes());
        let seen = node.run(&frame);
        assert!(
            seen.counted.values().sum::<u64>() == 1,
            "{length}: {seen:?}"
        );
        seen_counters.extend(seen.counted.into_keys());
    }
    // These stand for a TCP header that is not whole, a segment without payload, and requests of any length.
    let expected = ["bad_tcp", "cs_adopt", "cs_adopt_again", "cs_handshake_ack"];
    assert!(seen_counters.iter().eq(expected), "{seen_counters:?}");
}

fn cut_everywhere(node: &Node, frame: &[u8]) {
    for length in SHORTEST..frame.len() {
        let seen = node.run(&frame[..length]);
        let (verdict, counted): (_, &[_]) = if length < IP_HEADER_ENDS {
            (Pass, &[])
        } else {
            (Drop, &[("bad_ip", 1)])
        };
        seen.check(verdict, counted)
            .unwrap_or_else(|error| panic!("cut at {length}: {error}"));
        assert_eq!(seen.frame, frame[..length]);
    }
}
