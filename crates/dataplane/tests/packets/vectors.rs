//! The golden vectors of `crates/wire/vectors/lccp.txt`, fed to the C side.
//!
//! The programs speak only IPv4, and check the carried packet before the values of the TCB part. [`OTHERWISE`] names
//! every vector that they therefore judge in another way than `baton-wire` does.

#[path = "../../../wire/vectors/reader.rs"]
mod reader;

use std::{net::IpAddr, time::Duration};

use baton_wire::{Clock, Keys, Message, NodePair, Refusal, decode};
use etherparse::{EtherType, IpNumber};
use reader::Vector;

use crate::prelude::*;

type Expected = (Verdict, Counted<'static>);

const TO_DAEMON: Expected = (Pass, &[("lccp_to_daemon", 1)]);
/// The data server answers that its host lives.
const ALIVE: Expected = (Redirect, &[("ds_alive", 1)]);
/// Nothing listens, so a good ADOPT is refused.
const REFUSED: Expected = (Redirect, &[("ds_refused", 1)]);
/// Nothing listens, and the connection server that the ADOPT names is not known here.
const REFUSED_TO_NOBODY: Expected = (Drop, &[("ds_no_way", 1), ("ds_refused", 1)]);
/// The connection is not here, and no way to any other node is known.
const NO_SOCKET: Expected = (Drop, &[("ds_no_socket", 1)]);
const NO_WAY: Expected = (Drop, &[("ds_no_way", 1)]);
const NOT_HERE: Expected = (Drop, &[("ds_yield_gone", 1)]);
const UNCLAIMED: Expected = (Drop, &[("cs_unclaimed", 1)]);
const MOVED: Expected = (Drop, &[("cs_moved", 1)]);
const MOVED_ON: Expected = (Drop, &[("cs_moved_on", 1)]);
const SHORT: Expected = (Drop, &[("lccp_short", 1)]);
const VERSION: Expected = (Drop, &[("lccp_bad_version", 1)]);
const TAG: Expected = (Drop, &[("lccp_bad_tag", 1)]);
const STALE: Expected = (Drop, &[("lccp_stale", 1)]);
/// Nothing is kept of the connection that the message names.
const RECEIVED: Expected = (Drop, &[("ds_door_received", 1)]);
const UNKNOWN: Expected = (Drop, &[("lccp_unknown", 1)]);
const MISMATCH: Expected = (Drop, &[("lccp_mismatch", 1)]);

/// Vectors that are rejected as well, but for another reason or by another receiver.
const OTHERWISE: &[(&str, Expected)] = &[
    // The header is whole. The fault of the packet shows when it is opened.
    ("no-packet", MISMATCH),
    ("packet-cut", MISMATCH),
    ("packet-cut-v6", MISMATCH),
    ("packet-header-cut", MISMATCH),
    // The programs verify bodies, and only the daemon reads them.
    ("hello-fewer-services-than-said", TO_DAEMON),
    ("hello-head-cut", TO_DAEMON),
    ("query-shorter-than-it-says", TO_DAEMON),
    ("reply-head-cut", TO_DAEMON),
    // NONE is not for a data server, so it is not opened.
    ("none-other-client", UNKNOWN),
    // The kernel judges these values when it makes a socket of them. Here nothing listens, so there is no socket.
    ("mss-0", REFUSED),
    ("scale-15", REFUSED),
    // Only the daemon reads what is for the daemon.
    ("sync-too-high", TO_DAEMON),
    ("sync-for-a-program", MISMATCH),
    ("resend-nothing", TO_DAEMON),
    ("resend-half-a-number", TO_DAEMON),
    // The connection is not here, and the message names no node to which an answer could go.
    ("claim-of-nobody", NO_WAY),
    ("tcbs-fewer-than-said", TO_DAEMON),
    ("tcbs-head-cut", TO_DAEMON),
    ("tcbs-of-nobody", TO_DAEMON),
    ("tcbs-mss-0", TO_DAEMON),
    ("tcbs-scale-15", TO_DAEMON),
    ("tcbs-for-the-cs", UNKNOWN),
    ("taken-cut", TO_DAEMON),
    ("candidate-of-no-state", TO_DAEMON),
    ("candidate-handing-to-nobody", TO_DAEMON),
    ("candidate-cut", TO_DAEMON),
    ("head-fewer-than-said", TO_DAEMON),
    ("head-of-none", TO_DAEMON),
    ("head-request-cut", TO_DAEMON),
    ("head-request-of-two", TO_DAEMON),
    ("head-of-nothing", TO_DAEMON),
    ("head-to-nobody", TO_DAEMON),
    ("order-of-an-unknown-verb", TO_DAEMON),
    ("order-shorter-than-it-says", TO_DAEMON),
    ("order-migrate-to-nobody", TO_DAEMON),
    ("account-shorter-than-it-says", TO_DAEMON),
    ("account-of-no-text", TO_DAEMON),
];

#[test]
fn messages_at_the_data_server() {
    let _host = own_host();
    let node = Node::ds();
    for vector in vectors("message", 82) {
        let expected = match (vector.field("command"), vector.is_ipv4()) {
            ("adopt", true) => REFUSED,
            ("adopt-again", true) => REFUSED_TO_NOBODY,
            ("forward" | "forward-kept", true) => NO_SOCKET,
            ("received", true) => RECEIVED,
            ("claim", true) => NO_WAY,
            ("yield", true) => NOT_HERE,
            ("adopt" | "adopt-again" | "forward" | "claim", false) => MISMATCH,
            ("refused" | "none" | "moved", _) => UNKNOWN,
            ("alive", _) if vector.field("turned") == "no" => ALIVE,
            (command, _) if for_daemons(command) => TO_DAEMON,
            (other, _) => panic!("{}: no such command: {other}", vector.name),
        };
        let seen = vector.run_at_ds(&node, vector.clock("clock"));
        vector.check(&seen, expected);
        if expected == REFUSED {
            vector.came_back(&node, &seen);
        }
    }
}

/// Whether the programs leave messages with this command to the daemon.
fn for_daemons(command: &str) -> bool {
    matches!(
        command,
        "hello"
            | "sync"
            | "resend"
            | "query"
            | "reply"
            | "alive"
            | "resume"
            | "ready"
            | "head"
            | "candidate"
            | "tcbs"
            | "taken"
            | "order"
            | "account"
            | "yielded"
    )
}

/// The same messages at a connection server that knows none of these flows. Whatever is not for it, or belongs to no
/// connection, has passed the check of its tag.
#[test]
fn messages_at_the_connection_server() {
    let node = Node::cs();
    for vector in vectors("message", 82) {
        let expected = match vector.field("command") {
            // No data server has the connection, and this connection server did not ask for it.
            "none" if vector.field("attempt") != "0" => UNCLAIMED,
            "refused" | "none" => MISMATCH,
            // The sender is one of the data servers, but by then there is an entry.
            "moved" if vector.name == "moved-bare-client" => MISMATCH,
            "moved" if vector.name == "moved-on" => MOVED_ON,
            "moved" if vector.is_ipv4() => MOVED,
            "moved" => MISMATCH,
            "adopt" | "adopt-again" | "forward" | "forward-kept" | "received" | "claim"
            | "yield" => UNKNOWN,
            "alive" if vector.field("turned") == "no" => UNKNOWN,
            command if for_daemons(command) => TO_DAEMON,
            other => panic!("{}: no such command: {other}", vector.name),
        };
        vector.prepare(&node, vector.clock("clock"));
        vector.check(&node.run(&vector.frame()), expected);
    }
}

#[test]
fn what_a_receiver_must_accept() {
    let _host = own_host();
    let node = Node::ds();
    for vector in vectors("accept", 14) {
        let (command, _) = vector.field("as").split_once('-').unwrap();
        let expected = match command {
            command if for_daemons(command) => TO_DAEMON,
            "adopt" => REFUSED,
            "forward" => NO_SOCKET,
            "refused" | "keep" | "none" => UNKNOWN,
            other => panic!("{}: no such command: {other}", vector.name),
        };
        vector.check(&vector.run_at_ds(&node, vector.clock("now")), expected);
    }
}

#[test]
fn what_a_receiver_must_reject() {
    let _host = own_host();
    let node = Node::ds();
    for vector in vectors("reject", 92) {
        let named = OTHERWISE.iter().find(|(name, _)| *name == vector.name);
        let expected = match (named, vector.field("reason")) {
            (Some((_, expected)), _) => *expected,
            (None, "short") => SHORT,
            (None, "bad-version") => VERSION,
            (None, "bad-tag") => TAG,
            (None, "stale") => STALE,
            (None, "unknown") => UNKNOWN,
            (None, "mismatch") => MISMATCH,
            (None, other) => panic!("{}: no such reason: {other}", vector.name),
        };
        let seen = vector.run_at_ds(&node, vector.clock("now"));
        vector.check(&seen, expected);
    }
}

pub fn vectors(kind: &str, at_least: usize) -> Vec<Vector> {
    let text = include_str!("../../../wire/vectors/lccp.txt");
    reader::vectors(text, kind, at_least)
}

impl Vector {
    fn is_ipv4(&self) -> bool {
        let client = self.optional("client").unwrap_or("0.0.0.0 0");
        let (address, _) = client.split_once(' ').unwrap();
        address.parse::<IpAddr>().unwrap().is_ipv4()
    }

    /// The frame that `wrap` makes of this vector. Bytes behind the carried packet are padding of the link layer.
    fn frame(&self) -> Vec<u8> {
        let mut packet = self.packet();
        let mut padding = 0;
        if self.name == "padded" {
            let length = u16::from_be_bytes([packet[2], packet[3]]).into();
            padding = packet.len() - length;
            packet.truncate(length);
        }
        let body = [self.bytes("bytes"), packet].concat();
        let pair = self.pair();
        let packet = ip_packet(IpNumber(253), pair.from, pair.to, &body);
        padded(
            ethernet(ds_mac(0), CS_MAC, EtherType::IPV4, &packet),
            padding,
        )
    }

    fn prepare(&self, node: &Node, now: Clock) {
        node.change(|settings| settings.address = mapped(self.pair().to));
        node.share_with(&[(self.pair().from, self.lccp_key(), true)]);
        node.set_clock(self.steady(now));
    }

    fn run_at_ds(&self, node: &Node, now: Clock) -> Seen {
        self.prepare(node, now);
        node.run(&self.frame())
    }

    /// The clock at which the vector is run. A clock that runs, and is coarse, cannot be stopped at the very edge of
    /// the window, so the vectors at the edge are run a second inside or outside.
    fn steady(&self, now: Clock) -> Clock {
        let second = 1_000_000_000;
        Clock::from_nanos(match self.name.as_str() {
            "edge-of-the-window-past" | "too-new" => now.as_nanos() - second,
            "edge-of-the-window-future" | "too-old" => now.as_nanos() + second,
            _ => now.as_nanos(),
        })
    }

    #[track_caller]
    fn check(&self, seen: &Seen, (verdict, counted): Expected) {
        seen.check(verdict, counted)
            .unwrap_or_else(|error| panic!("{}: {error}", self.name));
    }

    /// Checks that `baton-wire` opens what the program sealed, with the same flow, TCB part and packet.
    fn came_back(&self, node: &Node, seen: &Seen) {
        let keys = Keys::only(self.lccp_key());
        let open = |frame: &[u8]| {
            let address = |at| <[u8; 4]>::try_from(&frame[at..at + 4]).unwrap().into();
            let pair = NodePair {
                from: address(IP + 12),
                to: address(IP + 16),
            };
            let window = Duration::from_secs(5);
            let received = decode(&frame[IP + 20..], pair, &keys, node.now(), window);
            let received = received.unwrap_or_else(|error| panic!("{}: {error}", self.name));
            (received.message, received.packet.to_vec())
        };
        let (adopt, sent_packet) = open(&seen.input);
        let (refused, packet) = open(&seen.frame);
        assert_eq!(packet, sent_packet, "{}", self.name);
        let Message::Adopt { flow, tcb, .. } = adopt else {
            panic!("{}: {adopt:?}", self.name);
        };
        let refusal = Refusal::NoListener;
        assert_eq!(
            refused,
            Message::Refused { flow, tcb, refusal },
            "{}",
            self.name
        );
    }
}
