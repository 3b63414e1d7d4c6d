//! LCCP messages that the connection server's program does not accept.

use baton_abi::{LCCP_ADOPT, LCCP_FORWARD, LCCP_REFUSED, LccpHeader, ROLE_CS, ROLE_DS};
use baton_wire::{Clock, Hello, Incarnation, LccpKey, Message, Permille, Refusal};
use etherparse::{EtherType, IpNumber};
use zerocopy::IntoBytes as _;

use super::forward::adopted;
use crate::{
    altered::{self, Altered, GOOD, SHORT, STALE, TAG, UNKNOWN, VERSION, dropped},
    prelude::*,
};

/// What comes of a good REFUSED.
const REFUSED: Counted<'_> = &[("cs_refused", 1)];

/// Messages that are altered in what only the connection server looks at.
const AT_CS: &[Altered] = &[
    Altered {
        header: &[
            ("bits that a later version may set", |h| {
                (h.flags, h.be_sequence) = (0xff, 0xabcd);
            }),
            ("a reason that is not known", |h| h.be_data = 99u32.to_be()),
        ],
        ..GOOD
    },
    Altered {
        header: &[("of the end of time", |h| h.be_clock = u64::MAX)],
        ..dropped(STALE)
    },
    Altered {
        header: &[("version 1", |h| h.version = 1)],
        ..dropped(VERSION)
    },
    Altered {
        tagged: &[
            ("receptor changed", |message| message[1] ^= 8),
            ("tag in little-endian", |m| m[72..80].reverse()),
        ],
        ..dropped(TAG)
    },
    Altered {
        header: &[
            ("receptor 9", |h| h.receptor = 9),
            ("command 99", |h| h.command = 99),
            ("ADOPT", |h| h.command = LCCP_ADOPT as u8),
            ("FORWARD", |h| h.command = LCCP_FORWARD as u8),
            ("for a data server here", |h| h.receptor = 2),
        ],
        ..dropped(UNKNOWN)
    },
];

#[test]
fn every_check() {
    let node = Node::cs();
    altered::check_all(AT_CS, (Tx, REFUSED), |name, make| {
        let (client, cookie) = adopted(&node);
        let packet = client.get(cookie).packet();
        let frame = to_cs_raw(0, &make(good(&node, &client), packet, to_cs_from(0)));
        let seen = node.run(&frame);
        if seen.verdict != Tx {
            assert_eq!(seen.frame, frame, "{name}");
        }
        seen
    });
}

/// A clock that is off is noted with its difference, but only for senders that have the key.
#[test]
fn a_stale_sender_is_noted() {
    let node = Node::fresh_cs();
    let (client, cookie) = adopted(&node);
    let throw = |from: u16, seconds: i64, key: &LccpKey| {
        let mut header = good(&node, &client);
        shift(&mut header, seconds);
        let packet = client.get(cookie).packet();
        let message = sealed(header, key, to_cs_from(from), &packet);
        node.run(&to_cs_raw(from, &message))
    };
    throw(0, 9, &key().lccp());
    throw(1, -37, &other_key().lccp()).expect(Drop, TAG);
    assert!(node.plane().stale_senders().unwrap().is_empty());

    throw(1, -3600, &key().lccp()).expect(Drop, STALE);
    throw(1, -37, &key().lccp()).expect(Drop, STALE);
    throw(2, 500, &key().lccp()).expect(Drop, STALE);
    let senders = node.plane().stale_senders().unwrap();
    assert_eq!(senders.len(), 2);
    // The noted difference is a little smaller than the one sent, because time has passed.
    let ahead = |index: u16| senders[&ds(index)].ahead_ns / 1_000_000_000;
    assert!((-60..=-36).contains(&ahead(1)), "{senders:?}");
    assert!((400..=500).contains(&ahead(2)), "{senders:?}");
}

/// A message that somebody has copied from the wire is not accepted by another receiver, or from another sender.
#[test]
fn a_message_is_bound_to_its_sender_and_receiver() {
    let node = Node::fresh_cs();
    let at = |from, to| {
        node.change(|settings| settings.address = mapped(CS));
        let (client, cookie) = adopted(&node);
        let packet = client.get(cookie).packet();
        let header = good(&node, &client);
        let message = sealed(header, &key().lccp(), to_cs_from(0), &packet);
        node.change(|settings| settings.address = mapped(to));
        let packet = ip_packet(IpNumber(253), from, to, &message);
        node.run(&ethernet(ds_mac(0), CS_MAC, EtherType::IPV4, &packet))
    };
    at(ds(0), CS).expect(Tx, REFUSED);
    at(ds(1), CS).expect(Drop, TAG);
    at(ds(0), ds(1)).expect(Drop, TAG);
    at(CS, ds(0)).expect(Drop, TAG);
}

/// A message is not accepted around another packet of the same connection either.
#[test]
fn a_message_is_bound_to_its_packet() {
    let node = Node::fresh_cs();
    let (client, cookie) = adopted(&node);
    let packet = client.get(cookie).packet();
    let with_another = |at: usize| {
        let header = good(&node, &client);
        let mut message = sealed(header, &key().lccp(), to_cs_from(0), &packet);
        message[80 + at] ^= 1;
        node.run(&to_cs_raw(0, &message))
    };
    // Length, identification, sequence, acknowledgement, flags, window, urgent pointer.
    for at in [3, 5, 24, 27, 28, 31, 33, 35, 38, 39] {
        let seen = with_another(at);
        seen.check(Drop, TAG)
            .unwrap_or_else(|error| panic!("byte {at}: {error}"));
    }
    // The packet's TCP checksum is not bound, because it may still be pending where the message is made.
    with_another(36).expect(Tx, REFUSED);
}

#[test]
fn under_another_key() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    let packet = client.get(cookie).packet();
    // A missing previous key is not taken for a key of zeros.
    for key in [other_key().lccp(), LccpKey::from_words([0, 0])] {
        let message = sealed(good(&node, &client), &key, to_cs_from(0), &packet);
        node.run(&to_cs_raw(0, &message)).expect(Drop, TAG);
    }
}

#[test]
fn an_outer_header_with_options_is_not_ours() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    let packet = client.get(cookie).packet();
    let header = good(&node, &client);
    let message = sealed(header, &key().lccp(), to_cs_from(0), &packet);
    let packet = ip_packet_with_options(IpNumber(253), ds(0), CS, &[1; 4], &message);
    let frame = ethernet(ds_mac(0), CS_MAC, EtherType::IPV4, &packet);
    node.run(&frame).expect(Drop, SHORT);
}

#[test]
fn a_heartbeat_passes() {
    let node = Node::cs();
    let incarnation = Incarnation::started_at(Clock::from_nanos(1));
    let hello = Hello::new(incarnation, Permille::saturating(5), Vec::new()).unwrap();
    let frame = to_cs(1, &Message::Hello(hello), node.now(), &key().lccp(), &[]);
    node.run(&frame)
        .expect(Pass, &[("lccp_to_daemon", 1)])
        .untouched();
}

/// A heartbeat's body may be shorter than a packet, but its header must be whole.
#[test]
fn a_cut_heartbeat_is_short() {
    let node = Node::cs();
    let mut header = good(&node, &Client::fresh());
    header.receptor = 3;
    let frame = to_cs_raw(1, &header.as_bytes()[..79]);
    node.run(&frame).expect(Drop, SHORT);
}

/// On a node that is both, the data server's program verifies what is for it.
#[test]
fn what_is_for_the_data_server_of_this_node_passes() {
    let node = Node::cs();
    node.change(|settings| settings.roles = (ROLE_CS | ROLE_DS) as u8);
    let (client, cookie) = adopted(&node);
    let packet = client.get(cookie).packet();
    let frame = to_cs(0, &adopt(&client), node.now(), &key().lccp(), &packet);
    node.run(&frame).expect(Pass, &[]).untouched();
}

/// LCCP may be configured to have another protocol number. Then 253 is not LCCP.
#[test]
fn the_protocol_number_is_configured() {
    let node = Node::cs();
    node.change(|settings| settings.protocol = 99);
    let frame = to_cs_raw(0, &[1; 100]);
    node.run(&frame).expect(Pass, &[]).untouched();
}

fn good(node: &Node, client: &Client) -> LccpHeader {
    let message = refused(client, linux_tcb(), Refusal::NoListener);
    let header = header_of(node, &message, to_cs_from(0));
    assert_eq!(u32::from(header.command), LCCP_REFUSED);
    header
}
