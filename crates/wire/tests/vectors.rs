//! The golden vectors of `vectors/lccp.txt`, encoded and decoded.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../vectors/reader.rs"]
mod reader;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use baton_wire::{
    Account, Address, AnsweredRequest, BatchFlags, Candidate, CandidateState, ClusterKey, Endpoint,
    EntryKey, Flow, HashKey, Head, HeadDigest, Heads, Health, Hello, HelloService, Incarnation,
    Keys, Message, Numbers, Order, Outcome, PathHash, Permille, Progress, Query, Ready, Received,
    Refusal, Reject, Reply, Resume, ShortAddress, Taken, TakenRefusal, TcbEntry, TcbPart, Tcbs,
    Verb, WindowScales, YieldAnswer, decode, encode, siphash24,
};
use reader::{Vector, hex};

#[test]
fn siphash_agrees() {
    for vector in vectors("siphash", 10) {
        let output = u64::from_str_radix(vector.field("output"), 16).unwrap();
        assert_eq!(
            siphash24(vector.key("key"), &vector.bytes("input")),
            output,
            "{}",
            vector.name
        );
    }
}

#[test]
fn derived_keys_agree() {
    for vector in vectors("derive", 2) {
        let secret: ClusterKey = vector.field("secret").parse().unwrap();
        let mut pairs = 0;
        for pair in vector.fields("pair") {
            let fields: Vec<&str> = pair.split(' ').collect();
            let [one, other] = [0, 1].map(|at| fields[at].parse::<Ipv4Addr>().unwrap());
            let words = [2, 3].map(|at| u64::from_str_radix(fields[at], 16).unwrap());
            assert_eq!(secret.pair(one, other).words(), words, "{}", vector.name);
            assert_eq!(secret.pair(other, one).words(), words, "{}", vector.name);
            pairs += 1;
        }
        assert!(pairs >= 4, "{}", vector.name);
        assert_eq!(
            secret.cookie().words(),
            vector.key("cookie"),
            "{}",
            vector.name
        );
        let hash_key = secret.hash_key();
        assert_eq!(hash_key.words(), vector.key("hash"), "{}", vector.name);
        let seed = u32::from_str_radix(vector.field("seed"), 16).unwrap();
        assert_eq!(hash_key.seed(), seed, "{}", vector.name);
    }
}

#[test]
fn path_hashes_agree() {
    for vector in vectors("path-hash", 7) {
        let key = HashKey::from_words(vector.key("key"));
        let found = PathHash::of(key, vector.field("path").as_bytes()).map(PathHash::get);
        let output = u64::from_str_radix(vector.field("output"), 16).unwrap();
        assert_eq!(found, Some(output), "{}", vector.name);
    }
}

#[test]
fn messages_encode_to_these_bytes() {
    for vector in vectors("message", 82) {
        let clock = vector.clock("clock");
        let packet = vector.packet();
        let bytes = encode(
            &vector.message(),
            &packet,
            clock,
            &vector.lccp_key(),
            vector.pair(),
        );
        let written = vector.field("bytes").to_owned() + vector.optional("packet").unwrap_or("");
        assert_eq!(hex(&bytes), written, "{}", vector.name);
    }
}

#[test]
fn messages_decode_from_these_bytes() {
    for vector in vectors("message", 82) {
        let clock = vector.clock("clock");
        let packet = vector.packet();
        let bytes = [vector.bytes("bytes"), packet.clone()].concat();
        let keys = Keys::only(vector.lccp_key());
        let expected = Received {
            message: vector.message(),
            clock,
            packet: &packet,
        };
        let found = decode(&bytes, vector.pair(), &keys, clock, Duration::ZERO);
        assert_eq!(found.as_ref(), Ok(&expected), "{}", vector.name);
    }
}

/// The checksum may be pending where a message is made, and complete where it arrives.
#[test]
fn a_checksum_may_change_on_the_way() {
    const CHECKSUM_AT: usize = 36;
    let mut carried = 0;
    for vector in vectors("message", 82) {
        let mut packet = vector.packet();
        if packet.first() != Some(&0x45) || packet.len() < CHECKSUM_AT + 2 {
            continue;
        }
        packet[CHECKSUM_AT] ^= 1;
        packet[CHECKSUM_AT + 1] ^= 1;
        let clock = vector.clock("clock");
        let bytes = [vector.bytes("bytes"), packet.clone()].concat();
        let keys = Keys::only(vector.lccp_key());
        let found = decode(&bytes, vector.pair(), &keys, clock, Duration::ZERO);
        assert_eq!(
            found.map(|received| received.packet.to_vec()),
            Ok(packet),
            "{}",
            vector.name
        );
        carried += 1;
    }
    assert!(carried >= 10, "{carried}");
}

#[test]
fn a_receiver_accepts_what_it_need_not_understand() {
    let messages: BTreeMap<_, _> = vectors("message", 82)
        .into_iter()
        .map(|vector| (vector.name.clone(), vector))
        .collect();
    for vector in vectors("accept", 14) {
        let same_as = &messages[vector.field("as")];
        let bytes = [vector.bytes("bytes"), vector.packet()].concat();
        let found = vector
            .decode(&bytes)
            .unwrap_or_else(|e| panic!("{}: {e}", vector.name));
        assert_eq!(found.message, same_as.message(), "{}", vector.name);
        assert_eq!(found.packet, same_as.packet(), "{}", vector.name);
    }
}

#[test]
fn a_receiver_rejects_for_the_right_reason() {
    for vector in vectors("reject", 92) {
        let reason = match vector.field("reason") {
            "short" => Reject::Short,
            "bad-version" => Reject::BadVersion,
            "bad-tag" => Reject::BadTag,
            "stale" => Reject::Stale,
            "unknown" => Reject::Unknown,
            "mismatch" => Reject::Mismatch,
            other => panic!("{}: no such reason: {other}", vector.name),
        };
        let bytes = vector.bytes("bytes");
        assert_eq!(vector.decode(&bytes), Err(reason), "{}", vector.name);
    }
}

fn vectors(kind: &str, at_least: usize) -> Vec<Vector> {
    reader::vectors(include_str!("../vectors/lccp.txt"), kind, at_least)
}

impl Vector {
    fn decode<'a>(&self, bytes: &'a [u8]) -> Result<Received<'a>, Reject> {
        let window = Duration::from_nanos(self.number("window"));
        decode(
            bytes,
            self.pair(),
            &Keys::only(self.lccp_key()),
            self.clock("now"),
            window,
        )
    }

    fn message(&self) -> Message {
        match self.field("command") {
            "adopt" => Message::Adopt {
                flow: self.flow(),
                tcb: self.tcb(),
                asker: self.short("asker"),
            },
            "adopt-again" => Message::AdoptAgain {
                flow: self.flow(),
                tcb: self.tcb(),
                asker: self.short("asker"),
                keeper: self.short("keeper"),
            },
            "refused" => Message::Refused {
                flow: self.flow(),
                tcb: self.tcb(),
                refusal: self.refusal(),
            },
            "forward" => Message::Forward {
                flow: self.flow(),
                next: self.short("next"),
                attempt: self.number("attempt"),
            },
            "forward-kept" => Message::ForwardKept {
                flow: self.flow(),
                keeper: self.short("keeper").unwrap(),
                attempt: self.number("attempt"),
            },
            "received" => Message::Received {
                flow: self.flow(),
                end: (self.field("end") != "none").then(|| self.number("end")),
            },
            "none" => Message::None {
                flow: self.flow(),
                attempt: self.number("attempt"),
                is_plain: self.optional("plain") == Some("yes"),
            },
            "claim" => Message::Claim {
                flow: self.flow(),
                asker: self.short("asker").unwrap(),
                attempt: self.number("attempt"),
                is_cut: self.optional("cut") == Some("yes"),
            },
            "moved" => Message::Moved {
                flow: self.flow(),
                tcb: self.tcb(),
                next: (self.optional("next")).map(short),
                is_cut: self.optional("cut") == Some("yes"),
            },
            "order" => Message::Order(Order {
                number: self.number("number"),
                verb: match self.field("verb") {
                    "drain" => Verb::Drain,
                    "undrain" => Verb::Undrain,
                    "migrate" => Verb::Migrate(self.short("other").unwrap()),
                    "tell" => Verb::Tell,
                    other => panic!("{}: no such verb: {other}", self.name),
                },
            }),
            "account" => {
                let text = String::from_utf8(self.bytes("text")).unwrap();
                Message::Account(Account::new(self.number("number"), text).unwrap())
            }
            "hello" => Message::Hello(self.hello()),
            "sync" => Message::Sync {
                last: self.number("last"),
            },
            "resend" => Message::Resend(self.numbers()),
            "query" => Message::Query(Query::new(
                self.flow(),
                self.number("number"),
                self.number("pool"),
                &self.bytes("host"),
                &self.bytes("path"),
            )),
            "reply" => Message::Reply(Reply {
                flow: self.flow(),
                number: self.number("number"),
                server: match self.field("server") {
                    "none" => None,
                    address => Some(address.parse::<IpAddr>().unwrap().into()),
                },
                lifetime_ms: self.number("lifetime"),
            }),
            "tcbs" => Message::Tcbs(self.tcbs()),
            "taken" => Message::Taken(self.taken()),
            "candidate" => Message::Candidate(self.candidate()),
            "alive" => Message::Alive {
                turned: self.field("turned") == "yes",
                dead: self.optional("dead") == Some("yes"),
            },
            "yield" => Message::Yield {
                flow: self.flow(),
                next: self.short("next"),
            },
            "yielded" => Message::Yielded {
                flow: self.flow(),
                answer: match self.field("answer") {
                    "gone" => YieldAnswer::Gone,
                    "kept" => YieldAnswer::Kept,
                    _ => YieldAnswer::Refused,
                },
            },
            "resume" => Message::Resume(self.resume()),
            "ready" => Message::Ready(self.ready()),
            "head" => Message::Heads(self.heads()),
            other => panic!("{}: no such command: {other}", self.name),
        }
    }

    fn flow(&self) -> Flow {
        let end = |name| {
            let (address, port) = self.field(name).split_once(' ').unwrap();
            endpoint(address, port)
        };
        Flow::new(end("client"), end("cluster")).unwrap()
    }

    fn tcb(&self) -> TcbPart {
        let scales = self
            .field("scales")
            .split_once(' ')
            .map(|(client, cluster)| {
                let scale = |text: &str| text.parse::<u8>().unwrap().try_into().unwrap();
                WindowScales {
                    client: scale(client),
                    cluster: scale(cluster),
                }
            });
        TcbPart {
            mss: self.number("mss"),
            scales,
            sack: self.field("sack") == "yes",
            // Most records do not give `aware`; the default is no.
            aware: self.optional("aware") == Some("yes"),
            attempt: self.number("attempt"),
            // Most records do not give `cwnd`; the default is 0.
            cwnd: (self.optional("cwnd")).map_or(0, |cwnd| cwnd.parse().unwrap()),
            resume: self.number("resume"),
        }
    }

    fn refusal(&self) -> Refusal {
        match self.field("refusal") {
            "no-listener" => Refusal::NoListener,
            "not-assigned" => Refusal::NotAssigned,
            _ => Refusal::Other,
        }
    }

    fn short(&self, name: &str) -> Option<ShortAddress> {
        match self.field(name) {
            "none" => None,
            address => Some(ShortAddress::try_from(address.parse::<IpAddr>().unwrap()).unwrap()),
        }
    }

    fn numbers(&self) -> Numbers {
        let numbers: Vec<u16> = (self.field("numbers").split(' '))
            .map(|number| number.parse().unwrap())
            .collect();
        Numbers::lists(&numbers).remove(0)
    }

    fn tcbs(&self) -> Tcbs {
        let is = |flag| self.field("flags") == flag;
        let flags = BatchFlags {
            first: is("first"),
            last: is("last"),
            abort: is("abort"),
        };
        let entries: Vec<TcbEntry> = self.fields("entry").map(tcb_entry).collect();
        Tcbs::new(
            self.number("migration"),
            self.number("batch"),
            flags,
            &entries,
        )
    }

    fn taken(&self) -> Taken {
        let numbers = |name| -> Vec<u32> {
            (self.field(name).split(' '))
                .map(|number| number.parse().unwrap())
                .collect()
        };
        let mut taken = Taken {
            migration: self.number("migration"),
            next: self.number("next"),
            taken: self.number("taken"),
            left_out: numbers("left-out").try_into().unwrap(),
            refusal: match self.field("refusal") {
                "none" => None,
                "no-cs" => Some(TakenRefusal::NoConnectionServer),
                "stranger" => Some(TakenRefusal::Stranger),
                "busy" => Some(TakenRefusal::Busy),
                "unknown" => Some(TakenRefusal::Unknown),
                "no-table" => Some(TakenRefusal::NoTable),
                other => panic!("{}: no such refusal: {other}", self.name),
            },
            ..Taken::default()
        };
        if self.field("came") != "none" {
            for batch in numbers("came") {
                taken.set(batch);
            }
        }
        taken
    }

    fn candidate(&self) -> Candidate {
        Candidate {
            epoch: self.number("epoch"),
            state: match self.field("state").split_once(' ') {
                Some(("handing", to)) => CandidateState::Handing {
                    to: to.parse::<IpAddr>().unwrap().into(),
                },
                None if self.field("state") == "front" => CandidateState::Front,
                _ => CandidateState::Standby,
            },
        }
    }

    fn known(&self, name: &str) -> Option<u64> {
        Some(self.number(name)).filter(|value| *value != 0)
    }

    fn resume(&self) -> Resume {
        let progress = Progress {
            start: self.number("start"),
            acknowledged: self.number("acknowledged"),
            digest: self.digest(),
            length: self.known("length"),
        };
        let request = self.bytes("request");
        Resume::new(self.flow(), self.number("number"), progress, request).unwrap()
    }

    fn digest(&self) -> Option<HeadDigest> {
        let unseen = self.optional("unseen");
        let unseen = unseen.map_or(0, |unseen| unseen.parse().unwrap());
        let value = NonZeroU64::new(self.number("digest"))?;
        Some(HeadDigest::new(value, unseen))
    }

    fn heads(&self) -> Heads {
        let heads: Vec<Head> = self.fields("head").map(head).collect();
        let Some((seq, pool)) = self.optional("answers").and_then(|of| of.split_once(' ')) else {
            return Heads::lists(&heads).remove(0);
        };
        let request = AnsweredRequest {
            seq: seq.parse().unwrap(),
            pool: pool.parse().unwrap(),
            text: self.bytes("request"),
        };
        Heads::with_request(heads[0], request)
    }

    fn ready(&self) -> Ready {
        let outcomes = [
            Outcome::Ready,
            Outcome::Begun,
            Outcome::Complete,
            Outcome::Unreachable,
            Outcome::Status,
            Outcome::NoLength,
            Outcome::Length,
            Outcome::Differs,
            Outcome::Full,
        ];
        let number: u32 = self.number("outcome");
        let outcome = outcomes.into_iter().find(|o| o.number() == number);
        Ready {
            flow: self.flow(),
            number: self.number("number"),
            outcome: outcome.unwrap(),
            digest: self.digest(),
            length: self.known("length"),
        }
    }

    fn hello(&self) -> Hello {
        let incarnation = Incarnation::started_at(self.clock("incarnation"));
        let cpu = Permille::try_from(self.number::<u16>("cpu")).unwrap();
        Hello::new(
            incarnation,
            cpu,
            self.fields("service").map(hello_service).collect(),
        )
        .unwrap()
        .with_draining(self.optional("draining") == Some("yes"))
    }
}

fn entry_key(client: &str, port: &str, cluster: &str, cluster_port: &str) -> EntryKey {
    EntryKey {
        client: endpoint(client, port),
        cluster: short(cluster),
        port: cluster_port.parse().unwrap(),
    }
}

fn short(address: &str) -> ShortAddress {
    ShortAddress::try_from(address.parse::<IpAddr>().unwrap()).unwrap()
}

fn head(text: &str) -> Head {
    let fields: Vec<&str> = text.split(' ').collect();
    let [
        client,
        port,
        cluster,
        cluster_port,
        start,
        length,
        digest,
        unseen,
        ref number @ ..,
    ] = fields[..]
    else {
        panic!("not a head: {text}");
    };
    Head {
        key: entry_key(client, port, cluster, cluster_port),
        start: start.parse().unwrap(),
        digest: HeadDigest::new(digest.parse().unwrap(), unseen.parse().unwrap()),
        length: NonZeroU32::new(length.parse().unwrap()),
        number: number.first().map(|number| number.parse().unwrap()),
    }
}

fn tcb_entry(text: &str) -> TcbEntry {
    let fields: Vec<&str> = text.split(' ').collect();
    let [
        client,
        port,
        cluster,
        cluster_port,
        pool,
        route,
        request,
        seq,
        ack,
        age,
        owner,
        previous,
        mss,
        scales,
        sack,
        state,
        attempt,
    ] = fields[..]
    else {
        panic!("not an entry: {text}");
    };
    let scale = |text: &str| text.parse::<u8>().unwrap().try_into().unwrap();
    TcbEntry {
        key: entry_key(client, port, cluster, cluster_port),
        pool: pool.parse().unwrap(),
        route: (route != "none").then(|| route.parse().unwrap()),
        request_seq: request.parse().unwrap(),
        last_seq: seq.parse().unwrap(),
        last_ack: ack.parse().unwrap(),
        age: age.parse().unwrap(),
        owner: short(owner),
        previous: (previous != "none").then(|| short(previous)),
        mss: mss.parse().unwrap(),
        scales: scales
            .split_once(',')
            .map(|(client, cluster)| WindowScales {
                client: scale(client),
                cluster: scale(cluster),
            }),
        sack: sack == "yes",
        state: state.parse().unwrap(),
        attempt: attempt.parse().unwrap(),
    }
}

fn hello_service(text: &str) -> HelloService {
    let [address, port, health, connections] = text.split(' ').collect::<Vec<_>>()[..] else {
        panic!("not a service: {text}");
    };
    let health = match health {
        "passing" => Health::Passing,
        "failing" => Health::Failing,
        _ => Health::Unknown,
    };
    HelloService {
        cluster: endpoint(address, port),
        health,
        connections: connections.parse().unwrap(),
    }
}

fn endpoint(address: &str, port: &str) -> Endpoint {
    let address = Address::from(address.parse::<IpAddr>().unwrap());
    Endpoint {
        address,
        port: port.parse().unwrap(),
    }
}
