//! Packets with wrong headers. Those for a cluster address are dropped and counted; all others are left to the
//! kernel.

use crate::{
    prelude::*,
    table::{self, Case, Out},
};

const BAD_IP: Counted<'_> = &[("bad_ip", 1)];
const BAD_TCP: Counted<'_> = &[("bad_tcp", 1)];
const FRAGMENT: Counted<'_> = &[("fragment", 1)];

#[test]
fn ip_headers_that_lie() {
    let good = frame(|get| get);
    let bytes = (good.len() - IP) as u16;
    let total_length = |length: u16| patched(good.clone(), IP + 2, &length.to_be_bytes());
    let first_byte = |byte: u8| patched(good.clone(), IP, &[byte]);
    let cases = vec![
        dropped("header of 0 bytes", first_byte(0x40), BAD_IP),
        dropped("header of 4 bytes", first_byte(0x41), BAD_IP),
        dropped("header of 16 bytes", first_byte(0x44), BAD_IP),
        dropped("version 6", first_byte(0x65), BAD_IP),
        dropped("version 0", first_byte(0x05), BAD_IP),
        dropped(
            "longer than the frame by 1",
            total_length(bytes + 1),
            BAD_IP,
        ),
        dropped("as long as can be", total_length(65535), BAD_IP),
        dropped("shorter than its header", total_length(19), BAD_IP),
        dropped("of no length", total_length(0), BAD_IP),
        dropped(
            "header longer than the packet",
            patched(frame(|get| get.options([]).payload([])), IP, &[0x4f]),
            BAD_IP,
        ),
        dropped(
            "header longer than the length says",
            patched(total_length(24), IP, &[0x47]),
            BAD_IP,
        ),
    ];
    table::run(&Node::cs(), cases);
}

#[test]
fn tcp_headers_that_lie() {
    let good = frame(|get| get);
    let total_length = |length: u16| patched(good.clone(), IP + 2, &length.to_be_bytes());
    let offset = |words: u8| patched(good.clone(), TCP + 12, &[words << 4]);
    let bare = frame(|get| get.options([]).payload([]));
    let cases = vec![
        dropped("header of 0 bytes", offset(0), BAD_TCP),
        dropped("header of 4 bytes", offset(1), BAD_TCP),
        dropped("header of 16 bytes", offset(4), BAD_TCP),
        dropped(
            "header longer than the packet",
            patched(bare.clone(), TCP + 12, &[0x60]),
            BAD_TCP,
        ),
        dropped(
            "header of 60 in a packet of 40",
            patched(bare, TCP + 12, &[0xf0]),
            BAD_TCP,
        ),
        dropped("no room for TCP", total_length(20), BAD_TCP),
        dropped("half a TCP header", total_length(30), BAD_TCP),
        dropped("one byte less than a TCP header", total_length(39), BAD_TCP),
        dropped("options cut off", total_length(51), BAD_TCP),
        dropped(
            "IP options where TCP should be",
            patched(frame(|get| get.payload([])), IP, &[0x4d]),
            BAD_TCP,
        ),
    ];
    table::run(&Node::cs(), cases);
}

/// The IP header's length decides where the packet ends. Any bytes behind it are padding.
#[test]
fn a_shorter_length_makes_a_shorter_packet() {
    let node = Node::cs();
    let client = Client::fresh();
    let cookie = node.cookie(&client);
    let get = client.get(cookie).frame();
    let ack_alone = patched(get, IP + 2, &52u16.to_be_bytes());
    node.run(&ack_alone)
        .expect(Drop, &[("cs_handshake_ack", 1)]);
}

#[test]
fn fragments_have_no_ports() {
    let fragment = |field: u16| patched(frame(|get| get), IP + 6, &field.to_be_bytes());
    let cases = vec![
        dropped("the first", fragment(0x2000), FRAGMENT),
        dropped("one in the middle", fragment(0x2010), FRAGMENT),
        dropped("the last", fragment(0x0010), FRAGMENT),
        dropped("the last there can be", fragment(0x1fff), FRAGMENT),
        dropped(
            "one that must not be fragmented",
            fragment(0x6000),
            FRAGMENT,
        ),
    ];
    let node = Node::cs();
    table::run(&node, cases);
    // The reserved bit alone does not make a fragment.
    node.run(&fragment(0x8000)).expect(Tx, &[("cs_claim", 1)]);
}

/// Malformed packets and fragments for other addresses pass to the kernel, except fragments of LCCP: those are always
/// dropped.
#[test]
fn for_other_addresses_they_pass() {
    let other = |packet: Segment| Segment {
        to: "10.77.0.101:80".parse().unwrap(),
        ..packet
    };
    let good = frame(other);
    let cases = vec![
        passed("a fragment", patched(good.clone(), IP + 6, &[0x20, 0])),
        passed("a last fragment", patched(good.clone(), IP + 6, &[0, 0x10])),
        passed(
            "a TCP header of 16 bytes",
            patched(good.clone(), TCP + 12, &[0x40]),
        ),
        passed("no room for TCP", patched(good.clone(), IP + 2, &[0, 20])),
        passed(
            "an IP header of 16 bytes",
            patched(good.clone(), IP, &[0x44]),
        ),
        passed("IP version 6", patched(good.clone(), IP, &[0x65])),
        passed("of no length", patched(good.clone(), IP + 2, &[0, 0])),
        passed(
            "longer than the frame",
            patched(good, IP + 2, &[0x7f, 0xff]),
        ),
    ];
    table::run(&Node::cs(), cases);
}

#[test]
fn padding_up_to_any_length_is_no_lie() {
    let node = Node::cs();
    for bytes in [1, 6, 18, 46, 500] {
        let syn = padded(Client::fresh().syn().frame(), bytes);
        let seen = node.run(&syn).expect(crate::node::Tx, &[("cs_syn", 1)]);
        assert_eq!(seen.frame.len(), 74);
    }
}

fn frame(change: impl Fn(Segment) -> Segment) -> Vec<u8> {
    change(Client::fresh().get(7)).frame()
}

fn dropped(name: &'static str, input: Vec<u8>, counted: Counted<'static>) -> Case {
    case(name, input, Drop, counted)
}

fn passed(name: &'static str, input: Vec<u8>) -> Case {
    case(name, input, Pass, &[])
}

fn case(name: &'static str, input: Vec<u8>, verdict: Verdict, counted: Counted<'static>) -> Case {
    Case {
        name,
        input,
        verdict,
        out: Out::Same,
        counted,
    }
}
