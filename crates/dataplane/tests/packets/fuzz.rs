//! Valid frames, broken at random: whatever comes in, a program answers with one of its verdicts, a
//! frame of a right length, valid checksums where it writes any, and counters that add up.
//!
//! `BATON_FUZZ_RUNS` says how many frames each program gets, `BATON_FUZZ_SEED` repeats a run.

use std::{collections::BTreeSet, env, time::SystemTime};

use baton_wire::{Message, Refusal, encode};
use fastrand::Rng;

use crate::{
    cluster::{SMTP, WEB, key},
    cs::icmp::{error, response},
    damage::{broken, option_byte},
    host::{connect, listen, on_own_host},
    lccp::{adopt, flow, linux_tcb, to_cs_raw, to_ds_raw},
    node::{Aborted, Node, Pass, Redirect, Seen, Tx},
    read::{Packet, verify_checksums},
    segment::{Client, GET, Segment},
};

const RUNS: u32 = 20_000;
/// What the programs put around a packet.
const OVERHEAD: usize = 100;
/// The longest SYN-ACK.
const SYN_ACK: usize = 74;

const MET_AT_CS: [&str; 18] = [
    "bad_ip",
    "bad_tcp",
    "cs_adopt",
    "cs_adopt_again",
    "cs_forward",
    "cs_icmp",
    "cs_refused",
    "cs_stray",
    "cs_stray_reset",
    "cs_syn",
    "cs_syn_bad_options",
    "fragment",
    "lccp_bad_tag",
    "lccp_bad_version",
    "lccp_mismatch",
    "lccp_short",
    "lccp_to_daemon",
    "lccp_unknown",
];
const MET_AT_DS: [&str; 14] = [
    "bad_ip",
    "bad_tcp",
    "ds_delivered",
    "ds_duplicate",
    "ds_forwarded",
    "ds_no_socket",
    "ds_refused",
    "ds_stale_ended",
    "fragment",
    "lccp_bad_tag",
    "lccp_bad_version",
    "lccp_mismatch",
    "lccp_short",
    "lccp_unknown",
];

#[test]
fn the_connection_server() {
    let node = Node::cs();
    let (seed, mut random) = random();
    let mut met = BTreeSet::new();
    let client = Client::of(WEB);
    let cookie = node.cookie(&client);
    let known = Client::of(WEB);
    let known_cookie = node.cookie(&known);
    node.run(&known.get(known_cookie).frame());
    for run in 0..runs() {
        if run % 256 == 0 {
            node.change(|settings| settings.stray_grace_ns = [0, u64::MAX][random.usize(..2)]);
        }
        let seeds = [
            client.syn().frame(),
            client.get(cookie).frame(),
            known.later(known_cookie, GET.len(), 1000).frame(),
            Client::of(SMTP).ack(7).frame(),
            to_cs_raw(random.u16(..3), &refusal(&node, &known, known_cookie)),
            to_cs_raw(0, &encode(&adopt(&client), node.now(), &key().lccp())),
            error(3, 4, &response(&known).packet()),
        ];
        let frame = broken(&mut random, &seeds);
        let seen = node.run(&frame);
        met.extend(seen.counted.keys().cloned());
        holds_at_cs(&seen)
            .unwrap_or_else(|error| panic!("seed {seed}, run {run}: {error}\n{seen:?}"));
    }
    all_met(&met, &MET_AT_CS);
}

#[test]
fn the_data_server() {
    on_own_host(|| {
        let node = Node::ds();
        let (seed, mut random) = random();
        let mut met = BTreeSet::new();
        let listener = listen(WEB);
        let connection = connect(&listener, WEB);
        let known = Client {
            address: connection.from,
            service: WEB,
            isn: connection.isn,
        };
        let stranger = Client::of(SMTP);
        for run in 0..runs() {
            let message = |message: &Message, packet: &Segment| {
                let bytes = encode(message, node.now(), &key().lccp());
                to_ds_raw(&[bytes, packet.packet()].concat())
            };
            let forward = Message::Forward { flow: flow(&known) };
            let seeds = [
                message(&adopt(&known), &known.get(7)),
                message(&adopt(&known.again()), &known.again().get(7)),
                message(&adopt(&stranger), &stranger.get(7)),
                message(&forward, &known.later(7, 100, 100)),
                known.later(7, 100, 100).frame(),
                stranger.get(7).frame(),
            ];
            let frame = broken(&mut random, &seeds);
            let seen = node.run(&frame);
            met.extend(seen.counted.keys().cloned());
            holds_at_ds(&seen)
                .unwrap_or_else(|error| panic!("seed {seed}, run {run}: {error}\n{seen:?}"));
        }
        all_met(&met, &MET_AT_DS);
    });
}

/// Options of any bytes on a SYN: an answer, or one counter that says why not.
#[test]
fn any_options() {
    let node = Node::cs();
    let (seed, mut random) = random();
    for run in 0..runs() {
        let words = random.usize(..=10);
        let bytes: Vec<u8> = (0..4 * words).map(|_| option_byte(&mut random)).collect();
        let client = Client::fresh();
        let seen = node.run(&client.syn().options(bytes).frame());
        let answered = seen.check(Tx, &[("cs_syn", 1)]);
        let dropped = seen.check(crate::node::Drop, &[("cs_syn_bad_options", 1)]);
        assert!(
            answered.is_ok() || dropped.is_ok(),
            "seed {seed}, run {run}: {seen:?}"
        );
        if answered.is_ok() {
            assert!(
                seen.frame.len() <= SYN_ACK,
                "seed {seed}, run {run}: {seen:?}"
            );
            let cookie = seen.packet().tcp().unwrap().header.sequence_number;
            let get = node.run(&client.get(cookie).frame());
            assert!(
                get.counted.contains_key("cs_adopt"),
                "seed {seed}, run {run}: {seen:?}"
            );
        }
    }
}

fn holds_at_cs(seen: &Seen) -> Result<(), String> {
    if seen.verdict == Aborted {
        return Err("aborted".into());
    }
    counted_once(seen)?;
    let (before, after) = (seen.input.len(), seen.frame.len());
    match seen.verdict {
        Pass if seen.frame != seen.input => Err("changed, and passed".into()),
        Tx | Redirect => {
            let right = if seen.counted.contains_key("cs_forward")
                || seen.counted.contains_key("cs_icmp")
            {
                after == before
            } else if seen.counted.contains_key("cs_refused") {
                after == before && outer_is_valid(seen)
            } else if seen.counted.contains_key("cs_adopt")
                || seen.counted.contains_key("cs_adopt_again")
            {
                after == before + OVERHEAD && outer_is_valid(seen)
            } else {
                // Our own segments: always whole, whatever they answer.
                after <= SYN_ACK && verify_checksums(&seen.frame).is_ok()
            };
            right
                .then_some(())
                .ok_or_else(|| "not what its counter says".into())
        }
        _ => Ok(()),
    }
}

fn holds_at_ds(seen: &Seen) -> Result<(), String> {
    counted_once(seen)?;
    let (before, after) = (seen.input.len(), seen.frame.len());
    let stripped = ["ds_duplicate", "ds_forwarded", "ds_stale_ended"]
        .iter()
        .any(|name| seen.counted.contains_key(*name));
    let right = match seen.verdict {
        Pass if stripped => after + OVERHEAD == before,
        Pass => seen.frame == seen.input,
        Redirect => after == before && seen.counted.contains_key("ds_refused"),
        crate::node::Drop => !seen.counted.contains_key("ds_delivered"),
        _ => false,
    };
    right
        .then_some(())
        .ok_or_else(|| "not what its counter says".into())
}

/// Each packet has one reason; some reasons have a companion.
fn counted_once(seen: &Seen) -> Result<(), String> {
    const COMPANIONS: [&str; 8] = [
        "cs_forward_bytes",
        "cs_fin",
        "cs_rst",
        "cs_refused_by_all",
        "cs_response_bytes",
        "ds_delivered",
        "ds_no_socket",
        "ds_unassigned",
    ];
    let reasons = seen
        .counted
        .iter()
        .filter(|(name, by)| !COMPANIONS.contains(&name.as_str()) && **by == 1)
        .count();
    let companions = seen.counted.len() - reasons;
    let passed_in_silence = seen.verdict == Pass && seen.counted.is_empty();
    match (reasons, companions) {
        (0, 0) if passed_in_silence => Ok(()),
        (1, _) | (0, 1) => Ok(()),
        _ => Err(format!("counted {:?}", seen.counted)),
    }
}

/// Ethernet, IP and length of what a program wrote around a packet.
fn outer_is_valid(seen: &Seen) -> bool {
    Packet::read(&seen.frame).is_ok_and(|outer| outer.ip.protocol == etherparse::IpNumber(253))
}

/// So that a change of the programs cannot leave most of them unvisited.
fn all_met(met: &BTreeSet<String>, wanted: &[&str]) {
    let missed: Vec<_> = wanted.iter().filter(|name| !met.contains(**name)).collect();
    assert!(missed.is_empty(), "never counted: {missed:?}");
}

fn refusal(node: &Node, client: &Client, cookie: u32) -> Vec<u8> {
    let message = Message::Refused {
        flow: flow(client),
        tcb: linux_tcb(),
        refusal: Refusal::NoListener,
    };
    let bytes = encode(&message, node.now(), &key().lccp());
    [bytes, client.get(cookie).packet()].concat()
}

fn runs() -> u32 {
    number("BATON_FUZZ_RUNS").unwrap_or(RUNS)
}

fn random() -> (u64, Rng) {
    let time = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = number("BATON_FUZZ_SEED").unwrap_or(time);
    (seed, Rng::with_seed(seed))
}

fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(name: &str) -> Option<T> {
    let text = env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is not a number")),
    )
}
