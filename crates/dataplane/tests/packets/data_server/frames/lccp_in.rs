//! LCCP at the data server: verified, and matched with the packet it carries.

use baton_abi::{LCCP_FORWARD, LCCP_HELLO, LCCP_NONE, LCCP_REFUSED, LccpHeader, ROLE_CS, ROLE_DS};
use baton_wire::{Clock, Hello, Incarnation, LccpKey, Message, Permille, encode};
use etherparse::{EtherType, IpNumber};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::prelude::*;

struct Case {
    name: &'static str,
    /// Changes the header of a good ADOPT before it is tagged.
    before: fn(&mut LccpHeader),
    /// Changes what follows the header, also before the tag is made.
    carried: fn(&mut Vec<u8>),
    /// Changes the whole message after it was tagged.
    after: fn(&mut Vec<u8>),
    verdict: Verdict,
    counted: Counted<'static>,
}

/// A good ADOPT, which is refused because nobody listens.
const GOOD: Case = Case {
    name: "good",
    before: |_| (),
    carried: |_| (),
    after: |_| (),
    verdict: Redirect,
    counted: &[("ds_refused", 1)],
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
/// Counters of a FORWARD without a connection: this node knows no other node, so it cannot answer NONE.
const NO_SOCKET: Counted<'_> = &[("ds_no_socket", 1)];
const MISMATCH: Counted<'_> = &[("lccp_mismatch", 1)];
/// Where the packet inside begins in the message.
const PACKET: usize = 80;

const CASES: &[Case] = &[
    GOOD,
    Case {
        name: "bits that a later version may set",
        before: |header| {
            (header.flags, header.be_sequence) = (0xff, 0xabcd);
            header.tcb.options |= 0xfc;
        },
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
        before: |header| header.version = 0,
        ..bad("version 0", VERSION)
    },
    Case {
        before: |header| header.version = 255,
        ..bad("version 255", VERSION)
    },
    Case {
        after: |message| message[79] ^= 1,
        ..bad("last bit of the tag", TAG)
    },
    Case {
        after: |message| message[52] ^= 1,
        ..bad("MSS changed", TAG)
    },
    Case {
        after: |message| message[PACKET + 27] ^= 1,
        ..bad("around a packet with another sequence number", TAG)
    },
    Case {
        after: |message| message[PACKET + 31] ^= 1,
        ..bad("around one with another acknowledgement", TAG)
    },
    Case {
        after: |message| message[PACKET + 33] ^= 1,
        ..bad("around one with a FIN", TAG)
    },
    Case {
        after: |message| message[PACKET + 35] ^= 1,
        ..bad("around one with another window", TAG)
    },
    Case {
        after: |message| message[PACKET + 39] ^= 1,
        ..bad("around one with another urgent pointer", TAG)
    },
    Case {
        after: |message| message[20] ^= 1,
        ..bad("client changed", TAG)
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
        before: |header| header.receptor = 1,
        ..bad("for a connection server, which this is not", UNKNOWN)
    },
    Case {
        before: |header| header.receptor = 4,
        ..bad("receptor 4", UNKNOWN)
    },
    Case {
        before: |header| header.command = 0,
        ..bad("command 0", UNKNOWN)
    },
    Case {
        before: |header| header.command = 255,
        ..bad("command 255", UNKNOWN)
    },
    Case {
        before: |header| header.command = LCCP_REFUSED as u8,
        ..bad("REFUSED for a data server", UNKNOWN)
    },
    Case {
        before: |header| header.command = LCCP_HELLO as u8,
        ..bad("HELLO for a data server", UNKNOWN)
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
        carried: |packet| packet.clear(),
        ..bad("no packet", MISMATCH)
    },
    Case {
        carried: |packet| packet.truncate(30),
        ..bad("half a TCP header", MISMATCH)
    },
    Case {
        carried: |packet| packet.push(0),
        ..bad("one byte more than the packet", MISMATCH)
    },
    Case {
        carried: |packet| packet[0] = 0x65,
        ..bad("carries IP version 6", MISMATCH)
    },
    Case {
        carried: |packet| packet[0] = 0x44,
        ..bad("carries an IP header of 16 bytes", MISMATCH)
    },
    Case {
        carried: |packet| packet[0] = 0x4f,
        ..bad("carries an IP header of 60 bytes that hides TCP", MISMATCH)
    },
    Case {
        carried: |packet| packet[9] = 17,
        ..bad("carries UDP", MISMATCH)
    },
    Case {
        carried: |packet| packet[9] = 253,
        ..bad("carries LCCP", MISMATCH)
    },
    Case {
        carried: |packet| packet[6] = 0x20,
        ..bad("carries a fragment", MISMATCH)
    },
    Case {
        carried: |packet| packet[3] -= 1,
        ..bad("carries a shorter packet", MISMATCH)
    },
    Case {
        carried: |packet| packet[32] = 0x40,
        ..bad("carries a TCP header of 16 bytes", MISMATCH)
    },
    Case {
        carried: |packet| packet[32] = 0xf0,
        ..bad("carries a TCP header of 60 bytes in fewer", MISMATCH)
    },
    Case {
        carried: |packet| packet[15] ^= 1,
        ..bad("carries another client's packet", MISMATCH)
    },
    Case {
        carried: |packet| packet[19] ^= 1,
        ..bad("carries one for another address", MISMATCH)
    },
    Case {
        carried: |packet| packet[21] ^= 1,
        ..bad("carries one of another port", MISMATCH)
    },
    Case {
        carried: |packet| packet[23] ^= 1,
        ..bad("carries one for another port", MISMATCH)
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
    Case {
        before: |header| (header.command, header.be_data) = (LCCP_FORWARD as u8, 0),
        ..bad("FORWARD of an unknown connection", NO_SOCKET)
    },
    Case {
        before: |header| header.command = LCCP_FORWARD as u8,
        ..bad("the same that is said to be elsewhere", NO_SOCKET)
    },
    Case {
        before: |header| header.command = LCCP_NONE as u8,
        ..bad("NONE for a data server", UNKNOWN)
    },
];

#[test]
fn every_check() {
    let _host = own_host();
    let node = Node::ds();
    for case in CASES {
        let client = Client::fresh();
        let mut packet = client.get(7).options([]).payload("GET").packet();
        (case.carried)(&mut packet);
        let mut header = good(&node, &client);
        (case.before)(&mut header);
        seal(&mut header, &key().lccp(), TO_DS, &packet);
        let mut message = [header.as_bytes(), &packet].concat();
        (case.after)(&mut message);
        let frame = to_ds_raw(&message);
        let seen = node.run(&frame);
        seen.check(case.verdict, case.counted)
            .unwrap_or_else(|error| panic!("{}: {error}", case.name));
        if case.verdict == Pass {
            assert_eq!(seen.frame, frame, "{}", case.name);
        }
    }
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
    at(CS, ds(0)).expect(Redirect, GOOD.counted);
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
    let packet = client.get(7).packet();
    seal(&mut header, &key().lccp(), TO_DS, &packet);
    let message = [header.as_bytes(), &packet].concat();
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
        let mut header = good(&node, &client);
        let packet = client.get(7).packet();
        seal(&mut header, &key, TO_DS, &packet);
        let message = [header.as_bytes(), &packet].concat();
        node.run(&to_ds_raw(&message))
    };
    run_under(key().lccp()).expect(Redirect, GOOD.counted);
    run_under(other_key().lccp()).expect(Drop, TAG);
    run_under(LccpKey::from_words([0, 0])).expect(Drop, TAG);

    node.share(other_key().lccp(), Some(key().lccp()));
    run_under(key().lccp()).expect(Redirect, GOOD.counted);
    run_under(other_key().lccp()).expect(Redirect, GOOD.counted);
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
    let packet = client.get(7).packet();
    seal(&mut header, &key().lccp(), TO_DS, &packet);
    let message = [header.as_bytes(), &packet].concat();
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
    let packet = client.get(7).packet();
    seal(&mut header, &key().lccp(), TO_DS, &packet);
    let frame = to_ds_raw(&[header.as_bytes(), &packet].concat());
    node.run(&frame).expect(Pass, &[]).untouched();
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
            let seen = node.run(&frame).expect(Redirect, GOOD.counted);
            assert_eq!(seen.frame[INNER..], packet.packet());
        }
    }
}

fn good(node: &Node, client: &Client) -> LccpHeader {
    let bytes = encode(&adopt(client), &[], node.now(), &key().lccp(), TO_DS);
    LccpHeader::read_from_bytes(&bytes).unwrap()
}
