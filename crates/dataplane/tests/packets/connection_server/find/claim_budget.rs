//! How many packets of unknown connections may cause a CLAIM, and which classes of packets come first.

use std::{net::SocketAddrV4, thread::sleep, time::Duration};

use baton_abi::{
    CLAIM_BUDGET_LIKELY, CLAIM_BUDGET_PROVED, CLAIM_BUDGET_STRANGER, LCCP_CLAIM, LCCP_FLAG_HEADERS,
};
use baton_dataplane::{Tick, sys};
use libbpf_rs::{MapCore as _, MapFlags};

use super::claim::moved;
use crate::{options::linux_later, prelude::*};

const CLAIM: Counted<'_> = &[("cs_claim", 1)];
const CUT: Counted<'_> = &[("cs_claim", 1), ("cs_claim_cut", 1)];
const PROVED: Counted<'_> = &[("cs_claim_limit", 1)];
const LIKELY: Counted<'_> = &[("cs_claim_limit_likely", 1)];
const STRANGER: Counted<'_> = &[("cs_claim_limit_stranger", 1)];
const SOURCE: Counted<'_> = &[("cs_claim_limit_source", 1)];

const ALL: [u32; 3] = [
    CLAIM_BUDGET_PROVED,
    CLAIM_BUDGET_LIKELY,
    CLAIM_BUDGET_STRANGER,
];

/// Packets that nothing speaks for do not spend the budget of the others, and the others do not spend theirs.
#[test]
fn each_class_has_its_own_budget() {
    let node = Node::fresh_cs();
    let believed = believed(&node);
    for (spent, what) in [
        (ALL, [PROVED, LIKELY, STRANGER]),
        ([0, ALL[1], ALL[2]], [CLAIM, LIKELY, STRANGER]),
        ([ALL[0], 0, ALL[2]], [PROVED, CLAIM, STRANGER]),
        ([ALL[0], ALL[1], 0], [PROVED, LIKELY, CLAIM]),
    ] {
        let packets = [
            proved(&node, Client::fresh()),
            likely(&believed),
            stranger(),
        ];
        for (packet, what) in packets.iter().zip(what) {
            let seen = when_spent(&node, spent, packet);
            seen.check(if *what == *CLAIM { Tx } else { Drop }, what)
                .unwrap_or_else(|error| panic!("{spent:?}: {error}"));
        }
    }
}

/// What was spent in an earlier tick does not count in the next one.
#[test]
fn what_was_spent_before_does_not_count() {
    let node = Node::fresh_cs();
    set_spent(&node, Tick(Tick::now().0 - 1), ALL);
    node.run(&stranger().frame()).expect(Tx, CLAIM);
}

/// A CLAIM costs as many messages as it may cause: one for each data server.
#[test]
fn a_claim_costs_what_it_may_cause() {
    let node = Node::fresh_cs();
    node.change(|settings| settings.data_servers = 255);
    let before = [0, 0, CLAIM_BUDGET_STRANGER - 256];
    loop {
        let now = Tick::now();
        set_spent(&node, now, before);
        let [last, more] = [(); 2].map(|()| node.run(&stranger().frame()));
        if Tick::now() == now {
            assert_eq!(last.verdict, Tx, "{last:?}");
            more.expect(Drop, STRANGER);
            break;
        }
    }
}

/// An echoed timestamp of the cluster proves a connection if it is not too old. A timestamp of another connection,
/// another key or another time proves nothing.
#[test]
fn what_is_a_proof() {
    let node = Node::fresh_cs();
    const MINUTE: i64 = 60_000;
    let cases: [(&str, i64, bool); 6] = [
        ("now", 0, true),
        ("an hour ago", -60 * MINUTE, true),
        ("a minute ahead", MINUTE, true),
        ("two hours ago", -120 * MINUTE, false),
        ("ten minutes ahead", 10 * MINUTE, false),
        ("at another time", 1 << 31, false),
    ];
    for (name, shift, proves) in cases {
        let client = Client::fresh();
        let echo = timestamp(&node, &client).wrapping_add(shift as u32);
        is_proof(&node, &with_echo(&client, echo), proves, name);
    }
    // These ports are fixed, because on some others the echo of another connection would be valid by chance.
    let [client, other] = [40_001, 40_002].map(|port| Client {
        address: SocketAddrV4::new([203, 0, 113, 1].into(), port),
        service: WEB,
        isn: 1,
    });
    let echo = timestamp(&node, &other);
    is_proof(
        &node,
        &with_echo(&client, echo),
        false,
        "another connection's",
    );
    is_proof(&node, &stranger(), false, "no timestamps");

    let echo = timestamp(&node, &client);
    for (name, periods, proves) in [("the previous key", 1, true), ("a key before it", 2, false)] {
        node.change(|settings| {
            let [current, _] = settings.cookie_key;
            settings.cookie_key = [[periods, 99], current];
        });
        is_proof(&node, &with_echo(&client, echo), proves, name);
    }
}

/// A proof is valid long after the cookie, at any connection server of the cluster.
#[test]
fn a_proof_outlives_the_cookie() {
    let node = Node::fresh_cs();
    let client = Client::fresh();
    let echo = timestamp(&node, &client);
    node.wait(COOKIE_PERIOD * 10);
    is_proof(&node, &with_echo(&client, echo), true, "46 minutes later");
}

/// A client without timestamps sends its segment again, and then the data servers are asked.
#[test]
fn who_comes_again_is_likely() {
    let node = Node::fresh_cs();
    let spent = [0, 0, ALL[2]];
    loop {
        let packet = stranger().payload(GET);
        when_spent(&node, spent, &packet).expect(Drop, STRANGER);
        sleep(Duration::from_millis(300));
        // Another segment of the same client is still refused: only a repeated segment counts.
        let other = packet.clone().seq(packet.seq.wrapping_add(1));
        let [other, again] = [&other, &packet].map(|packet| in_one_tick(&node, spent, packet));
        if let (Some(other), Some(again)) = (other, again) {
            other.expect(Drop, STRANGER);
            again.expect(Tx, CLAIM);
            return;
        }
    }
}

/// Once half of the budget is spent, each network is limited to its share, and other networks still get theirs.
#[test]
fn a_loud_source_leaves_room() {
    // Each processor counts for itself.
    stay_on_one_processor();
    let node = Node::fresh_cs();
    let half = [0, 0, CLAIM_BUDGET_STRANGER / 2];
    // The share is a sixteenth, and a packet costs 1 here, where no data servers are configured.
    let share = CLAIM_BUDGET_STRANGER / 16;
    let from = |network: u8, last: u8, port: u16| Client {
        address: SocketAddrV4::new([203, 0, network, last].into(), port),
        service: WEB,
        isn: 1,
    };
    for network in 1.. {
        let now = Tick::now();
        set_spent(&node, now, half);
        let loud: Vec<_> = (0..=share)
            .map(|i| from(network, 1 + (i % 2) as u8, 1024 + i as u16))
            .map(|client| client.later(7, 5, 5).options([]))
            .map(|packet| node.run(&packet.frame()))
            .collect();
        let other = node.run(&stranger().frame());
        if Tick::now() == now {
            assert!(loud[..share as usize].iter().all(|seen| seen.verdict == Tx));
            loud[share as usize].check(Drop, SOURCE).unwrap();
            assert_eq!(other.verdict, Tx, "{other:?}");
            break;
        }
    }
}

/// Once many packets ask, a CLAIM carries no data of a client without a proof, because that data may be forged. A
/// client with a proof does not have to send its data again.
#[test]
fn data_travels_only_with_a_proof_or_while_it_is_quiet() {
    let node = Node::fresh_cs();
    let eighth = ALL.map(|budget| budget / 8);
    let believed = believed(&node);
    for packet in [likely(&believed), stranger()] {
        let packet = packet.flags("PA").payload(GET);
        let seen = when_spent(&node, eighth, &packet).expect(Tx, CUT);
        let sent = seen.packet();
        assert_eq!(
            sent.body[2..4],
            [LCCP_CLAIM, LCCP_FLAG_HEADERS].map(|word| word as u8)
        );
        let headers = Segment {
            payload: Vec::new(),
            ..packet.clone()
        }
        .packet();
        // The TCP checksum is still that of the whole packet.
        assert_eq!(sent.body[80..80 + 36], headers[..36]);
        assert_eq!(sent.body[80 + 38..], headers[38..]);
    }
    let packet = stranger();
    let whole = when_spent(&node, eighth, &packet).expect(Tx, CLAIM);
    assert_eq!(
        whole.packet().body[80..],
        packet.packet(),
        "there is no data to leave out"
    );
    let reset = stranger().flags("RA").payload(GET);
    when_spent(&node, eighth, &reset).expect(Drop, &[("cs_claim_cut", 1)]);
    let packet = proved(&node, Client::fresh()).flags("PA").payload(GET);
    let whole = when_spent(&node, eighth, &packet).expect(Tx, CLAIM);
    assert_eq!(whole.packet().body[80..], packet.packet());
    let packet = stranger().flags("PA").payload(GET);
    let whole = when_spent(&node, eighth.map(|most| most - 1), &packet).expect(Tx, CLAIM);
    assert_eq!(whole.packet().body[80..], packet.packet());
}

/// A RST that nothing speaks for may cause a CLAIM like any other packet, and no more often.
#[test]
fn resets_are_limited_too() {
    let node = Node::fresh_cs();
    let reset = stranger().flags("R");
    when_spent(&node, ALL, &reset).expect(Drop, STRANGER);
    when_spent(&node, [0; 3], &reset).expect(Tx, CLAIM);
}

/// A client for which a connection was found lately.
fn believed(node: &Node) -> Client {
    let client = Client::fresh();
    let packet = client.later(7, 5, 5);
    node.run(&moved(node, 1, &packet, linux_tcb()))
        .expect(Drop, &[("cs_moved", 1)]);
    client
}

/// A packet without timestamps of an unknown client. A made-up timestamp would be taken for an echo of the cluster's
/// once in 990 times.
fn stranger() -> Segment {
    Client::from_afar(WEB).later(7, 5, 5).options([])
}

/// A packet of another connection of a client that counts as likely.
fn likely(believed: &Client) -> Segment {
    believed.at_another_port().later(7, 5, 5).options([])
}

fn proved(node: &Node, client: Client) -> Segment {
    with_echo(&client, timestamp(node, &client))
}

pub fn with_echo(client: &Client, echo: u32) -> Segment {
    client.later(7, 5, 5).options(linux_later(123_460, echo))
}

/// The timestamp of the cluster in the SYN-ACK to this client.
pub fn timestamp(node: &Node, client: &Client) -> u32 {
    let seen = node.run(&client.syn().frame()).expect(Tx, &[("cs_syn", 1)]);
    let packet = seen.packet();
    // MSS, SACK permitted, then kind and length of the timestamps.
    let options = &packet.tcp().unwrap().header.options;
    u32::from_be_bytes(options.as_slice()[8..12].try_into().unwrap())
}

/// Checks whether the packet is a proof: the other budgets are spent, so only a proof gets through.
#[track_caller]
fn is_proof(node: &Node, packet: &Segment, proves: bool, name: &str) {
    let seen = when_spent(node, [0, ALL[1], ALL[2]], packet);
    let (verdict, counted) = if proves {
        (Tx, CLAIM)
    } else {
        (Drop, STRANGER)
    };
    seen.expect_of(name, verdict, counted);
    forget_claim(node, packet);
}

/// Forgets the claim of this packet, so that another case with the same packet begins anew.
fn forget_claim(node: &Node, packet: &Segment) {
    let key = node.tcb_key(&packet.client());
    let _ = map_named(node.plane(), "strays").delete(zerocopy::IntoBytes::as_bytes(&key));
    let refusals = map_named(node.plane(), "claim_refusals");
    let (elements, bytes) = (refusals.max_entries(), refusals.value_size() as usize);
    sys::zero_elements(std::os::fd::AsFd::as_fd(&refusals), elements, bytes).unwrap();
}

/// The fate of a packet when so much of each budget is spent in this tick. `None`: the tick has ended meanwhile, and
/// another tick counts anew.
fn in_one_tick(node: &Node, spent: [u32; 3], packet: &Segment) -> Option<Seen> {
    let now = Tick::now();
    set_spent(node, now, spent);
    let seen = node.run(&packet.frame());
    (Tick::now() == now).then_some(seen)
}

/// The fate of a packet when so much of each budget is spent in this tick. The packet is run again if the tick ends
/// meanwhile.
fn when_spent(node: &Node, spent: [u32; 3], packet: &Segment) -> Seen {
    loop {
        if let Some(seen) = in_one_tick(node, spent, packet) {
            return seen;
        }
        forget_claim(node, packet);
    }
}

/// Sets what every processor has spent in this tick.
fn set_spent(node: &Node, tick: Tick, [proved, likely, stranger]: [u32; 3]) {
    let map = map_named(node.plane(), "claims");
    let claims = [tick.0, proved, likely, stranger, 0]
        .map(u32::to_ne_bytes)
        .concat();
    let all = vec![claims; libbpf_rs::num_possible_cpus().unwrap()];
    map.update_percpu(&0u32.to_ne_bytes(), &all, MapFlags::ANY)
        .unwrap();
}
