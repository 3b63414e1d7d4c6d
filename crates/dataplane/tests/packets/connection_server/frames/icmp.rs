//! ICMP errors about responses go to the owner, because only the owner can act on them.

use baton_abi::{DATA_SERVER_LOCAL, DATA_SERVER_PRESENT, DATA_SERVER_ROUTED, DataServer};
use etherparse::{EtherType, IpNumber};

use crate::{connection_server::forward::adopted, prelude::*};

const TO_OWNER: Counted<'_> = &[("cs_icmp", 1)];
const UNREACHABLE: u8 = 3;
const TIME_EXCEEDED: u8 = 11;

/// The offset of a frame's ICMP message. INSIDE is that of the packet inside the message.
const ICMP: usize = 14 + 20;
const INSIDE: usize = ICMP + 8;

#[test]
fn an_error_about_a_response_goes_to_the_owner() {
    let node = Node::cs();
    let errors = [
        ("too big", UNREACHABLE, 4),
        ("no way to the host", UNREACHABLE, 1),
        ("no way to the net", UNREACHABLE, 0),
        ("TTL", TIME_EXCEEDED, 0),
    ];
    for (name, kind, code) in errors {
        let (client, _) = adopted(&node);
        let frame = error(kind, code, &response(&client).packet());
        let seen = node.run(&frame);
        seen.expect_of(name, Tx, TO_OWNER);
        let readdressed = patched(frame, 0, &[ds_mac(0), CS_MAC].concat());
        assert_eq!(seen.frame, readdressed, "{name}");
    }
}

/// RFC 792 asks for 8 bytes of what is behind the IP header, RFC 1812 for more; Ethernet pads the frame.
#[test]
fn with_as_much_of_the_packet_as_a_router_cares_to_send() {
    let node = Node::cs();
    let (client, _) = adopted(&node);
    let packet = response(&client).packet();
    for bytes in [28, 29, 40, 52, packet.len()] {
        let frame = error(UNREACHABLE, 4, &packet[..bytes]);
        node.run(&frame).expect(Tx, TO_OWNER);
        node.run(&padded(frame, 18)).expect(Tx, TO_OWNER);
    }
}

#[test]
fn where_the_owner_is() {
    let present = DATA_SERVER_PRESENT as u8;
    let places = [
        (
            "elsewhere",
            DataServer {
                ifindex: 77,
                ..data_server(0)
            },
            Redirect,
            TO_OWNER,
        ),
        (
            "here",
            DataServer {
                flags: present | DATA_SERVER_LOCAL as u8,
                ..data_server(0)
            },
            Pass,
            TO_OWNER,
        ),
        (
            "behind a router, where only TCP is carried",
            DataServer {
                flags: present | DATA_SERVER_ROUTED as u8,
                ..data_server(0)
            },
            Pass,
            &[],
        ),
        ("gone", DataServer::default(), Pass, &[]),
    ];
    for (name, server, verdict, counted) in places {
        let node = Node::cs();
        let (client, _) = adopted(&node);
        node.plane().set_data_server(0, &server).unwrap();
        let frame = error(UNREACHABLE, 4, &response(&client).packet());
        let seen = node.run(&frame);
        seen.expect_of(name, verdict, counted);
        if counted.is_empty() {
            assert_eq!(seen.frame, frame, "{name}");
        }
    }
}

/// Every other ICMP message passes to the kernel, untouched.
#[test]
fn every_other_icmp_passes() {
    let node = Node::cs();
    let (client, _) = adopted(&node);
    let about = response(&client).packet();
    let good = error(UNREACHABLE, 4, &about);
    let stranger = response(&Client::fresh()).packet();
    let mut other_service = response(&client);
    other_service.from.set_port(8080);
    let cases = [
        ("echo request", patched(good.clone(), ICMP, &[8, 0])),
        ("echo reply", patched(good.clone(), ICMP, &[0, 0])),
        ("redirect", patched(good.clone(), ICMP, &[5, 1])),
        ("source quench", patched(good.clone(), ICMP, &[4, 0])),
        ("parameter problem", patched(good.clone(), ICMP, &[12, 0])),
        ("about an unknown flow", error(UNREACHABLE, 4, &stranger)),
        (
            "about another service",
            error(UNREACHABLE, 4, &other_service.packet()),
        ),
        (
            "about the request, not the response",
            error(UNREACHABLE, 4, &client.get(7).packet()),
        ),
        ("about UDP", patched(good.clone(), INSIDE + 9, &[17])),
        ("about LCCP", patched(good.clone(), INSIDE + 9, &[253])),
        ("about IPv6", patched(good.clone(), INSIDE, &[0x65])),
        (
            "about a packet with IP options",
            patched(good.clone(), INSIDE, &[0x46]),
        ),
        (
            "with too little of the packet",
            error(UNREACHABLE, 4, &about[..27]),
        ),
        ("with nothing of it", error(UNREACHABLE, 4, &[])),
        ("a fragment", patched(good, 20, &[0x20, 0])),
    ];
    for (name, frame) in cases {
        let seen = node.run(&frame);
        seen.expect_of(name, Pass, &[]);
        assert_eq!(seen.frame, frame, "{name}");
    }
}

/// Bytes that a cut message lacks are not taken from the link's padding.
#[test]
fn padding_is_no_packet() {
    let node = Node::cs();
    let (client, _) = adopted(&node);
    let about = response(&client).packet();
    let whole = error(UNREACHABLE, 4, &about[..28]);
    let length = (whole.len() - 14 - 1) as u16;
    let shorter = patched(whole, 16, &length.to_be_bytes());
    node.run(&shorter).expect(Pass, &[]).untouched();
}

/// A segment of a response from the data server to this client.
pub fn response(client: &Client) -> Segment {
    Segment {
        from: WEB,
        to: client.address,
        ..client.later(7, 0, 0).payload(vec![b'r'; 500])
    }
}

/// An ICMP error from a router on the way. Its second word has an MTU, as in "fragmentation needed".
pub fn error(kind: u8, code: u8, about: &[u8]) -> Vec<u8> {
    let message = [&[kind, code, 0, 0, 0, 0, 0x05, 0x14][..], about].concat();
    let router = [203, 0, 113, 254].into();
    let packet = ip_packet(IpNumber(1), router, CLUSTER, &message);
    ethernet(CLIENT_MAC, CS_MAC, EtherType::IPV4, &packet)
}
