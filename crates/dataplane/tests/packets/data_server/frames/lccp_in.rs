//! LCCP at the data server: verified, and matched with the packet it carries.

use baton_abi::{LCCP_FORWARD, LCCP_HELLO, LCCP_NONE, LCCP_REFUSED, LccpHeader, ROLE_CS, ROLE_DS};
use baton_wire::{Clock, Hello, Incarnation, LccpKey, Message, Permille, encode};
use etherparse::{EtherType, IpNumber};

use crate::{
    altered::{self, Altered, GOOD, SHORT, TAG, UNKNOWN, VERSION, dropped},
    prelude::*,
};

/// Counters of a FORWARD without a connection: this node knows no other node, so it cannot answer NONE.
const NO_SOCKET: Counted<'_> = &[("ds_no_socket", 1)];
const MISMATCH: Counted<'_> = &[("lccp_mismatch", 1)];
/// A good ADOPT is refused, because nobody listens.
const REFUSED: Counted<'_> = &[("ds_refused", 1)];
/// Where the packet inside begins in the message.
const PACKET: usize = 80;

/// Messages that are altered in what only the data server looks at.
const AT_DS: &[Altered] = &[
    Altered {
        header: &[("bits that a later version may set", |h| {
            (h.flags, h.be_sequence) = (0xff, 0xabcd);
            h.tcb.options |= 0xfc;
        })],
        ..GOOD
    },
    Altered {
        header: &[("version 255", |h| h.version = 255)],
        ..dropped(VERSION)
    },
    Altered {
        tagged: &[
            ("MSS changed", |m| m[52] ^= 1),
            ("around another sequence number", |m| m[PACKET + 27] ^= 1),
            ("around another acknowledgement", |m| m[PACKET + 31] ^= 1),
            ("around a packet with a FIN", |m| m[PACKET + 33] ^= 1),
            ("around another window", |m| m[PACKET + 35] ^= 1),
            ("around another urgent pointer", |m| m[PACKET + 39] ^= 1),
            ("client changed", |m| m[20] ^= 1),
        ],
        ..dropped(TAG)
    },
    Altered {
        header: &[
            ("for a connection server here", |h| h.receptor = 1),
            ("receptor 4", |h| h.receptor = 4),
            ("command 255", |h| h.command = 255),
            ("REFUSED", |h| h.command = LCCP_REFUSED as u8),
            ("HELLO", |h| h.command = LCCP_HELLO as u8),
            ("NONE", |h| h.command = LCCP_NONE as u8),
        ],
        ..dropped(UNKNOWN)
    },
    Altered {
        carried: &[
            ("no packet", |packet| packet.clear()),
            ("half a TCP header", |packet| packet.truncate(30)),
            ("one byte more than the packet", |packet| packet.push(0)),
            ("IP version 6", |packet| packet[0] = 0x65),
            ("an IP header of 16 bytes", |packet| packet[0] = 0x44),
            ("an IP header of 60 that hides TCP", |p| p[0] = 0x4f),
            ("UDP", |packet| packet[9] = 17),
            ("LCCP", |packet| packet[9] = 253),
            ("a fragment", |packet| packet[6] = 0x20),
            ("a shorter packet", |packet| packet[3] -= 1),
            ("a TCP header of 16 bytes", |packet| packet[32] = 0x40),
            ("a TCP header of 60 bytes in fewer", |p| p[32] = 0xf0),
            ("another client's packet", |packet| packet[15] ^= 1),
            ("a packet for another address", |packet| packet[19] ^= 1),
            ("a packet of another port", |packet| packet[21] ^= 1),
            ("a packet for another port", |packet| packet[23] ^= 1),
        ],
        ..dropped(MISMATCH)
    },
    Altered {
        header: &[
            ("FORWARD of an unknown connection", |h| {
                (h.command, h.be_data) = (LCCP_FORWARD as u8, 0);
            }),
            ("the same that is said to be elsewhere", |h| {
                h.command = LCCP_FORWARD as u8;
            }),
        ],
        ..dropped(NO_SOCKET)
    },
];

#[test]
fn every_check() {
    let _host = own_host();
    let node = Node::ds();
    altered::check_all(AT_DS, (Redirect, REFUSED), |name, make| {
        let client = Client::fresh();
        let packet = client.get(7).options([]).payload("GET").packet();
        let frame = to_ds_raw(&make(good(&node, &client), packet, TO_DS));
        let seen = node.run(&frame);
        if seen.verdict == Pass {
            assert_eq!(seen.frame, frame, "{name}");
        }
        seen
    });
}

/// A message that was seen on its way is valid neither for another receiver nor from another sender.
#[test]
fn a_message_is_bound_to_its_sender_and_receiver() {
    let _host = own_host();
    let node = Node::ds();
    let client = Client::fresh();
    let packet = client.get(7).packet();
    let at = |from, to| {
        let message = encode(&adopt(&client), &packet, node.now(), &key().lccp(), TO_DS);
        let packet = ip_packet(IpNumber(253), from, to, &message);
        node.change(|settings| settings.address = mapped(to));
        node.run(&ethernet(CS_MAC, ds_mac(0), EtherType::IPV4, &packet))
    };
    at(CS, ds(0)).expect(Redirect, REFUSED);
    at(CS, ds(1)).expect(Drop, TAG);
    at(ds(2), ds(0)).expect(Drop, TAG);
    at(ds(0), CS).expect(Drop, TAG);
}

/// The program notes whose clock is wrong, and by how much.
#[test]
fn a_stale_sender_is_noted() {
    let _host = own_host();
    let node = Node::ds();
    let client = Client::fresh();
    let mut header = good(&node, &client);
    shift(&mut header, 3600);
    let message = sealed(header, &key().lccp(), TO_DS, &client.get(7).packet());
    node.run(&to_ds_raw(&message))
        .expect(Drop, &[("lccp_stale", 1)]);
    let senders = node.plane().stale_senders().unwrap();
    let ahead = senders[&CS].ahead_ns / 1_000_000_000;
    assert!((3500..=3600).contains(&ahead), "{senders:?}");
}

#[test]
fn keys() {
    let _host = own_host();
    let node = Node::ds();
    let client = Client::fresh();
    let run_under = |key: LccpKey| {
        let packet = client.get(7).packet();
        let message = sealed(good(&node, &client), &key, TO_DS, &packet);
        node.run(&to_ds_raw(&message))
    };
    run_under(key().lccp()).expect(Redirect, REFUSED);
    run_under(other_key().lccp()).expect(Drop, TAG);
    run_under(LccpKey::from_words([0, 0])).expect(Drop, TAG);

    node.share(other_key().lccp(), Some(key().lccp()));
    run_under(key().lccp()).expect(Redirect, REFUSED);
    run_under(other_key().lccp()).expect(Redirect, REFUSED);
    run_under(LccpKey::from_words([3, 4])).expect(Drop, TAG);
}

/// IPv6 flows are not supported. The first bytes of an IPv6 address must not be ignored, because the last four would
/// then be taken for an IPv4 address.
#[test]
fn an_ipv6_flow_is_not_its_last_four_bytes() {
    let _host = own_host();
    let node = Node::ds();
    let client = Client::fresh();
    let mut header = good(&node, &client);
    header.flow.client = mapped(*client.address.ip());
    header.flow.client[0] = 0x20;
    let message = sealed(header, &key().lccp(), TO_DS, &client.get(7).packet());
    node.run(&to_ds_raw(&message)).expect(Drop, MISMATCH);
}

#[test]
fn an_outer_header_with_options_is_not_ours() {
    let node = Node::ds();
    let client = Client::fresh();
    let packet = client.get(7).packet();
    let message = encode(&adopt(&client), &packet, node.now(), &key().lccp(), TO_DS);
    let packet = ip_packet_with_options(IpNumber(253), CS, ds(0), &[1; 4], &message);
    let frame = ethernet(CS_MAC, ds_mac(0), EtherType::IPV4, &packet);
    node.run(&frame).expect(Drop, SHORT);
}

/// A fragment of LCCP is dropped, because the kernel would put the fragments together, and they would reach the daemon
/// unverified.
#[test]
fn a_fragment_of_lccp_goes_no_further() {
    let node = Node::ds();
    let client = Client::fresh();
    let frame = to_ds(&adopt(&client), node.now(), &client.get(7).packet());
    let fragment = patched(frame, IP + 6, &[0x20, 0]);
    node.run(&fragment).expect(Drop, &[("fragment", 1)]);
}

#[test]
fn a_heartbeat_passes() {
    let node = Node::ds();
    let incarnation = Incarnation::started_at(Clock::from_nanos(1));
    let hello = Hello::new(incarnation, Permille::saturating(5), Vec::new()).unwrap();
    let frame = to_ds(&Message::Hello(hello), node.now(), &[]);
    node.run(&frame)
        .expect(Pass, &[("lccp_to_daemon", 1)])
        .untouched();
}

/// On a node with both roles, what the connection server's program has passed up is for the daemon, and passes.
#[test]
fn what_is_for_the_connection_server_of_this_node_passes() {
    let node = Node::ds();
    node.change(|settings| settings.roles = (ROLE_CS | ROLE_DS) as u8);
    let client = Client::fresh();
    let mut header = good(&node, &client);
    (header.receptor, header.command) = (1, LCCP_REFUSED as u8);
    let message = sealed(header, &key().lccp(), TO_DS, &client.get(7).packet());
    node.run(&to_ds_raw(&message)).expect(Pass, &[]).untouched();
}

/// Packets with IP and TCP options are opened where their payload really begins.
#[test]
fn every_header_length() {
    let _host = own_host();
    let node = Node::ds();
    for words in 0..=10 {
        for options in 0..=10 {
            let client = Client::fresh();
            let packet: Segment = client.get(7);
            let packet = packet
                .ip_options(vec![1; 4 * words])
                .options(vec![1; 4 * options]);
            let frame = to_ds(&adopt(&client), node.now(), &packet.packet());
            let seen = node.run(&frame).expect(Redirect, REFUSED);
            assert_eq!(seen.frame[INNER..], packet.packet());
        }
    }
}

fn good(node: &Node, client: &Client) -> LccpHeader {
    header_of(node, &adopt(client), TO_DS)
}
