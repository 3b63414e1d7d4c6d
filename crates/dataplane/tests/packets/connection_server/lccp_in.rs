//! LCCP messages that the connection server's program does not accept.

use baton_abi::{LCCP_ADOPT, LCCP_FORWARD, LCCP_REFUSED, LccpHeader, ROLE_CS, ROLE_DS};
use baton_wire::{Clock, Hello, Incarnation, LccpKey, Message, Permille, Refusal, encode};
use etherparse::{EtherType, IpNumber};
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::forward::adopted;
use crate::prelude::*;

struct Case {
    name: &'static str,
    /// Changes the header of a good REFUSED before it gets its tag.
    before: fn(&mut LccpHeader),
    /// Changes the message after it has got its tag.
    after: fn(&mut Vec<u8>),
    verdict: Verdict,
    counted: Counted<'static>,
}

const GOOD: Case = Case {
    name: "good",
    before: |_| (),
    after: |_| (),
    verdict: Tx,
    counted: &[("cs_refused", 1)],
};

const fn bad(name: &'static str, counted: Counted<'static>) -> Case {
    Case {
        name,
        verdict: Drop,
        counted,
        ..GOOD
    }
}

const SHORT: Counted<'_> = &[("lccp_short", 1)];
const VERSION: Counted<'_> = &[("lccp_bad_version", 1)];
const TAG: Counted<'_> = &[("lccp_bad_tag", 1)];
const STALE: Counted<'_> = &[("lccp_stale", 1)];
const UNKNOWN: Counted<'_> = &[("lccp_unknown", 1)];

const CASES: &[Case] = &[
    GOOD,
    Case {
        name: "bits that a later version may set",
        before: |header| (header.flags, header.be_sequence) = (0xff, 0xabcd),
        ..GOOD
    },
    Case {
        name: "a reason that this version does not know",
        before: |header| header.be_data = 99u32.to_be(),
        ..GOOD
    },
    Case {
        name: "9 s old",
        before: |header| shift(header, -9),
        ..GOOD
    },
    Case {
        name: "9 s ahead",
        before: |header| shift(header, 9),
        ..GOOD
    },
    Case {
        before: |header| shift(header, -11),
        ..bad("11 s old", STALE)
    },
    Case {
        before: |header| shift(header, 11),
        ..bad("11 s ahead", STALE)
    },
    Case {
        before: |header| header.be_clock = 0,
        ..bad("of 1970", STALE)
    },
    Case {
        before: |header| header.be_clock = u64::MAX,
        ..bad("of the end of time", STALE)
    },
    Case {
        before: |header| header.version = 0,
        ..bad("version 0", VERSION)
    },
    Case {
        before: |header| header.version = 1,
        ..bad("version 1", VERSION)
    },
    Case {
        after: |message| message[79] ^= 1,
        ..bad("last bit of the tag", TAG)
    },
    Case {
        after: |message| message[1] ^= 8,
        ..bad("receptor changed", TAG)
    },
    Case {
        after: |message| message[72..80].reverse(),
        ..bad("tag in little-endian", TAG)
    },
    Case {
        after: |message| message[72..80].fill(0),
        ..bad("no tag", TAG)
    },
    Case {
        before: |header| header.receptor = 0,
        ..bad("receptor 0", UNKNOWN)
    },
    Case {
        before: |header| header.receptor = 9,
        ..bad("receptor 9", UNKNOWN)
    },
    Case {
        before: |header| header.command = 0,
        ..bad("command 0", UNKNOWN)
    },
    Case {
        before: |header| header.command = 99,
        ..bad("command 99", UNKNOWN)
    },
    Case {
        before: |header| header.command = LCCP_ADOPT as u8,
        ..bad("ADOPT for the CS", UNKNOWN)
    },
    Case {
        before: |header| header.command = LCCP_FORWARD as u8,
        ..bad("FORWARD for the CS", UNKNOWN)
    },
    Case {
        before: |header| header.receptor = 2,
        ..bad("for a data server, which this is not", UNKNOWN)
    },
    Case {
        after: |message| message.truncate(79),
        ..bad("one byte less than a header", SHORT)
    },
    Case {
        after: |message| message.clear(),
        ..bad("nothing", SHORT)
    },
    Case {
        before: |header| header.receptor = 3,
        after: |message| message[72] ^= 0xff,
        ..bad("for the daemon, with a wrong tag", TAG)
    },
    Case {
        before: |header| {
            header.receptor = 3;
            shift(header, -11);
        },
        ..bad("for the daemon, 11 s old", STALE)
    },
    Case {
        before: |header| (header.receptor, header.version) = (3, 1),
        ..bad("for the daemon, of version 1", VERSION)
    },
    Case {
        before: |header| header.receptor = 3,
        name: "for the daemon, around a packet",
        verdict: Pass,
        counted: &[("lccp_to_daemon", 1)],
        ..GOOD
    },
];

#[test]
fn every_check() {
    let node = Node::cs();
    for case in CASES {
        let (client, cookie) = adopted(&node);
        let packet = client.get(cookie).packet();
        let mut header = good(&node, &client);
        (case.before)(&mut header);
        seal(&mut header, &key().lccp(), to_cs_from(0), &packet);
        let mut message = [header.as_bytes(), &packet].concat();
        (case.after)(&mut message);
        let frame = to_cs_raw(0, &message);
        let seen = node.run(&frame);
        seen.check(case.verdict, case.counted)
            .unwrap_or_else(|error| panic!("{}: {error}", case.name));
        if case.verdict != Tx {
            assert_eq!(seen.frame, frame, "{}", case.name);
        }
    }
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
        seal(&mut header, key, to_cs_from(from), &packet);
        let message = [header.as_bytes(), &packet].concat();
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
        let mut header = good(&node, &client);
        seal(&mut header, &key().lccp(), to_cs_from(0), &packet);
        let message = [header.as_bytes(), &packet].concat();
        node.change(|settings| settings.address = mapped(to));
        let packet = ip_packet(IpNumber(253), from, to, &message);
        node.run(&ethernet(ds_mac(0), CS_MAC, EtherType::IPV4, &packet))
    };
    at(ds(0), CS).expect(Tx, &[("cs_refused", 1)]);
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
        let mut header = good(&node, &client);
        seal(&mut header, &key().lccp(), to_cs_from(0), &packet);
        let mut message = [header.as_bytes(), &packet].concat();
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
    with_another(36).expect(Tx, &[("cs_refused", 1)]);
}

#[test]
fn under_another_key() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    let mut header = good(&node, &client);
    let packet = client.get(cookie).packet();
    seal(&mut header, &other_key().lccp(), to_cs_from(0), &packet);
    let message = [header.as_bytes(), &packet].concat();
    node.run(&to_cs_raw(0, &message)).expect(Drop, TAG);
    // A missing previous key is not taken for a key of zeros.
    let packet = client.get(cookie).packet();
    seal(
        &mut header,
        &LccpKey::from_words([0, 0]),
        to_cs_from(0),
        &packet,
    );
    let message = [header.as_bytes(), &packet].concat();
    node.run(&to_cs_raw(0, &message)).expect(Drop, TAG);
}

#[test]
fn an_outer_header_with_options_is_not_ours() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    let mut header = good(&node, &client);
    let packet = client.get(cookie).packet();
    seal(&mut header, &key().lccp(), to_cs_from(0), &packet);
    let message = [header.as_bytes(), &packet].concat();
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
    let message = Message::Refused {
        flow: flow(client),
        tcb: linux_tcb(),
        refusal: Refusal::NoListener,
    };
    let bytes = encode(&message, &[], node.now(), &key().lccp(), to_cs_from(0));
    let header = LccpHeader::read_from_bytes(&bytes).unwrap();
    assert_eq!(u32::from(header.command), LCCP_REFUSED);
    header
}
