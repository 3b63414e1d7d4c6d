//! Packets with wrong headers at the data server: if they are for a cluster address, they never reach the kernel's TCP.

use crate::{
    prelude::*,
    table::{self, Case, Out},
};

const BAD_IP: Counted<'_> = &[("bad_ip", 1)];
const BAD_TCP: Counted<'_> = &[("bad_tcp", 1)];
const FRAGMENT: Counted<'_> = &[("fragment", 1)];
const IP_HEADER_ENDS: usize = IP + 20;

#[test]
fn headers_that_lie() {
    let good = Client::fresh().get(7).frame();
    let bytes = (good.len() - IP) as u16;
    let total_length = |length: u16| patched(good.clone(), IP + 2, &length.to_be_bytes());
    let first_byte = |byte: u8| patched(good.clone(), IP, &[byte]);
    let offset = |words: u8| patched(good.clone(), TCP + 12, &[words << 4]);
    let fragment = |field: u16| patched(good.clone(), IP + 6, &field.to_be_bytes());
    let cases = vec![
        case("IP header of 16 bytes", first_byte(0x44), Drop, BAD_IP),
        case("IP version 6", first_byte(0x65), Drop, BAD_IP),
        case("of no length", total_length(0), Drop, BAD_IP),
        case(
            "longer than the frame",
            total_length(bytes + 1),
            Drop,
            BAD_IP,
        ),
        case("shorter than its header", total_length(19), Drop, BAD_IP),
        case("no room for TCP", total_length(20), Drop, BAD_TCP),
        case("options cut off", total_length(51), Drop, BAD_TCP),
        case("TCP header of 0 bytes", offset(0), Drop, BAD_TCP),
        case("TCP header of 16 bytes", offset(4), Drop, BAD_TCP),
        case("the first fragment", fragment(0x2000), Drop, FRAGMENT),
        case("the last fragment", fragment(0x0010), Drop, FRAGMENT),
    ];
    table::run(&Node::ds(), cases);
}

#[test]
fn for_other_addresses_they_pass() {
    let other = Segment {
        to: "10.77.0.101:80".parse().unwrap(),
        ..Client::fresh().get(7)
    };
    let good = other.frame();
    let cases = vec![
        case(
            "a fragment",
            patched(good.clone(), IP + 6, &[0x20, 0]),
            Pass,
            &[],
        ),
        case(
            "a TCP header of 16 bytes",
            patched(good.clone(), TCP + 12, &[0x40]),
            Pass,
            &[],
        ),
        case(
            "no room for TCP",
            patched(good.clone(), IP + 2, &[0, 20]),
            Pass,
            &[],
        ),
        case(
            "an IP header of 16 bytes",
            patched(good.clone(), IP, &[0x44]),
            Pass,
            &[],
        ),
        case(
            "of no length",
            patched(good.clone(), IP + 2, &[0, 0]),
            Pass,
            &[],
        ),
        case(
            "longer than the frame",
            patched(good, IP + 2, &[0x7f, 0xff]),
            Pass,
            &[],
        ),
    ];
    table::run(&Node::ds(), cases);
}

#[test]
fn a_packet_cut_at_every_byte() {
    let node = Node::ds();
    let frame = Client::fresh().get(7).frame();
    cut_everywhere(&node, &frame);
}

#[test]
fn an_adopt_cut_at_every_byte() {
    let node = Node::ds();
    let client = Client::fresh();
    let frame = to_ds(&adopt(&client), node.now(), &client.get(7).packet());
    // The packet is not for a cluster address, so the kernel judges what is not whole.
    for length in IP_HEADER_ENDS..frame.len() {
        node.run(&frame[..length]).expect(Pass, &[]).untouched();
    }
}

/// The ADOPT is cut, and the length in its IP header is set to what is left, so that the header is right.
#[test]
fn shorter_adopts_that_do_not_lie() {
    let _host = own_host();
    let node = Node::ds();
    let client = Client::fresh();
    let frame = to_ds(&adopt(&client), node.now(), &client.get(7).packet());
    for length in IP_HEADER_ENDS..=frame.len() {
        let total = (length - IP) as u16;
        let mut frame = patched(frame[..length].to_vec(), IP + 2, &total.to_be_bytes());
        if total >= 100 {
            tag_again(&mut frame, &key().lccp());
        }
        let (verdict, counted): (_, &[_]) = if total < 100 {
            (Drop, &[("lccp_short", 1)])
        } else if length < client.get(7).frame().len() + 100 {
            (Drop, &[("lccp_mismatch", 1)])
        } else {
            (Redirect, &[("ds_refused", 1)])
        };
        node.run(&frame)
            .check(verdict, counted)
            .unwrap_or_else(|error| panic!("cut at {length}: {error}"));
    }
}

/// Cuts the frame at every byte behind the IP header. A test run takes no shorter frame of IPv4.
fn cut_everywhere(node: &Node, frame: &[u8]) {
    for length in IP_HEADER_ENDS..frame.len() {
        let seen = node.run(&frame[..length]);
        seen.check(Drop, BAD_IP)
            .unwrap_or_else(|error| panic!("cut at {length}: {error}"));
        assert_eq!(seen.frame, frame[..length]);
    }
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
