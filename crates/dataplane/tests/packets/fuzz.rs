//! Valid frames, broken at random. Whatever comes in, a program answers with one of its verdicts, a frame of a right
//! length, valid checksums where it writes any, and counters that add up.
//!
//! `BATON_FUZZ_RUNS` sets the number of frames that each program gets. `BATON_FUZZ_SEED` repeats a run.

use std::{collections::BTreeSet, env, time::SystemTime};

use baton_abi::{Ring, short_address};
use baton_wire::{Message, Refusal, YieldAnswer};
use fastrand::Rng;

use crate::{
    connection_server::{
        frames::{
            icmp::{error, response},
            switched::switched,
        },
        http::{Connection, get, routes_by_name},
    },
    damage::{broken, option_byte},
    invariants::{SYN_ACK, holds_at_cs, holds_at_ds, holds_at_switch},
    prelude::*,
};

const RUNS: u32 = 20_000;
const MET_AT_CS: &str = "\
    bad_ip bad_tcp cs_adopt cs_adopt_again cs_ahead cs_claim cs_forward cs_icmp cs_moved cs_none \
    cs_probe cs_refused cs_stray cs_stray_reset cs_syn cs_syn_bad_options cs_unclaimed fragment \
    lccp_bad_tag lccp_bad_version lccp_mismatch lccp_short lccp_to_daemon lccp_unknown";
const MET_AT_DS: &str = "\
    bad_ip bad_tcp ds_claim_passed_on ds_claimed ds_delivered ds_duplicate ds_forwarded \
    ds_no_socket ds_no_way ds_none ds_refused ds_stale_ended ds_unclaimed fragment lccp_bad_tag \
    lccp_bad_version lccp_mismatch lccp_short lccp_unknown";

const MET_AT_SWITCH: &str = "\
    bad_ip bad_tcp fragment switch_begun switch_forward switch_icmp switch_kept switch_syn";

#[test]
fn the_connection_server() {
    let node = Node::cs();
    routes_by_name(&node);
    let (seed, mut random) = random();
    let mut met = BTreeSet::new();
    let mut client = Client::of(WEB);
    let mut cookie = node.cookie(&client);
    let (mut known, mut known_cookie) = adopted(&node);
    let mut http = Connection::answered(&node);
    let stray = Client::of(WEB);
    for run in 0..runs() {
        // Broken packets end a connection sooner or later.
        if run % 16 == 0 {
            http = Connection::answered(&node);
            // A cookie begins only one connection, and only once.
            client = Client::of(WEB);
            cookie = node.cookie(&client);
        }
        if run % 256 == 0 {
            (known, known_cookie) = adopted(&node);
            node.change(|settings| settings.stray_grace_ns = [0, u64::MAX][random.usize(..2)]);
        }
        let seeds = [
            client.syn().frame(),
            client.get(cookie).frame(),
            client.ack(cookie).seq(client.isn).frame(),
            known.later(known_cookie, GET.len(), 1000).frame(),
            Client::of(SMTP).ack(7).frame(),
            refusal(random.u16(..3), &node, &known, known_cookie),
            none_of(random.u16(..3), random.bool(), &node, &known, known_cookie),
            to_cs(0, &adopt(&client), node.now(), &key().lccp(), &[]),
            error(3, 4, &response(&known).packet()),
            http.data(get("/ds2/")).frame(),
            answer(
                &node,
                random.u16(..3),
                &Message::Moved {
                    flow: flow(&http.client),
                    tcb: linux_tcb(),
                    next: Some(short(ds(random.u16(..3)))),
                    is_cut: false,
                },
                &http.data(get("/ds2/")),
            ),
            answer(
                &node,
                random.u16(..3),
                &none(&http.client, random.u8(..2), random.bool()),
                &http.empty(),
            ),
            claimed_by(&node, random.u16(..4), random.bool(), &Client::of(WEB)),
            claimed_by(&node, 0, false, &stray),
            stray.later(7, 10, 10).frame(),
            switched(&client.syn().frame()),
            for_daemon(&node, random.u16(..3), &known),
        ];
        let frame = broken(&mut random, &seeds);
        let seen = node.run(&frame);
        met.extend(seen.counted.keys().cloned());
        holds_at_cs(&seen)
            .unwrap_or_else(|error| panic!("seed {seed}, run {run}: {error}\n{seen:?}"));
    }
    all_met(&met, MET_AT_CS);
}

#[test]
fn the_data_server() {
    let _host = own_host();
    let node = Node::ds();
    node.data_server().set_peer(CS, &peer(CS_MAC)).unwrap();
    node.data_server()
        .set_peer(ds(1), &peer(ds_mac(1)))
        .unwrap();
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
    let next = short_address(ds(1));
    let ring = Ring {
        next,
        length: 3,
        missing: 0,
    };
    node.data_server().set_ring(1, &ring).unwrap();
    for run in 0..runs() {
        let message =
            |message: &Message, packet: &Segment| to_ds(message, node.now(), &packet.packet());
        let seeds = [
            message(&adopt(&known), &known.get(7)),
            message(&adopt(&known.again()), &known.again().get(7)),
            message(&adopt(&stranger), &stranger.get(7)),
            message(&forward(&known), &known.later(7, 100, 100)),
            message(&forward(&stranger), &stranger.later(7, 100, 100)),
            message(&forward_to(&stranger, 1), &stranger.later(7, 100, 100)),
            message(&claim(&stranger, random.u8(..4)), &stranger.get(7)),
            message(&claim(&known, 0), &known.ack(connection.server_isn)),
            known.later(7, 100, 100).frame(),
            stranger.get(7).frame(),
        ];
        let frame = broken(&mut random, &seeds);
        let seen = node.run(&frame);
        met.extend(seen.counted.keys().cloned());
        holds_at_ds(&seen)
            .unwrap_or_else(|error| panic!("seed {seed}, run {run}: {error}\n{seen:?}"));
    }
    all_met(&met, MET_AT_DS);
}

#[test]
fn the_switch() {
    let node = Node::switch();
    node.set_places(|at| ((at % 3) as u16, (at % 2) as u16));
    let (seed, mut random) = random();
    let mut met = BTreeSet::new();
    // The switch remembers connections in another way if their place has changed. Some of these clients are at places
    // that have changed, and others at places that have not.
    let clients: [Client; 16] = std::array::from_fn(|_| Client::of(WEB));
    for run in 0..runs() {
        let client = clients[random.usize(..clients.len())];
        let seeds = [
            client.syn().frame(),
            Client::of(WEB).get(7).frame(),
            client.later(7, 1, 1).payload(vec![1; 1300]).frame(),
            error(3, 4, &response(&client).packet()),
            to_ds(&adopt(&client), node.now(), &[]),
            switched(&client.syn().frame()),
        ];
        let frame = broken(&mut random, &seeds);
        let seen = node.run(&frame);
        met.extend(seen.counted.keys().cloned());
        holds_at_switch(&seen)
            .unwrap_or_else(|error| panic!("seed {seed}, run {run}: {error}\n{seen:?}"));
    }
    all_met(&met, MET_AT_SWITCH);
}

/// A SYN with any bytes as options gets an answer, or one counter says why not.
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

/// A connection whose ADOPT is on its way, and the cookie with which it began.
fn adopted(node: &Node) -> (Client, u32) {
    let client = Client::of(WEB);
    let cookie = node.cookie(&client);
    node.run(&client.get(cookie).frame());
    (client, cookie)
}

/// Checks that each of these counters has moved, so that no change of the programs can leave most of them unvisited.
fn all_met(met: &BTreeSet<String>, wanted: &str) {
    let missed: Vec<_> = (wanted.split(' '))
        .filter(|name| !met.contains(*name))
        .collect();
    assert!(missed.is_empty(), "never counted: {missed:?}");
}

/// An answer to CLAIM: MOVED, or the NONE of the last data server that was asked.
fn claimed_by(node: &Node, from: u16, moved: bool, client: &Client) -> Vec<u8> {
    let message = if moved {
        crate::lccp::moved(client, None)
    } else {
        none(client, 3, false)
    };
    answer(node, from, &message, &client.later(7, 10, 10))
}

/// A data server's message about a connection, around one of its packets.
fn answer(node: &Node, from: u16, message: &Message, packet: &Segment) -> Vec<u8> {
    node.said_by(from, message, packet)
}

/// A message that the program leaves to the daemon.
fn for_daemon(node: &Node, from: u16, client: &Client) -> Vec<u8> {
    let message = Message::Yielded {
        flow: flow(client),
        answer: YieldAnswer::Gone,
    };
    answer(node, from, &message, &client.later(7, 10, 10))
}

fn refusal(from: u16, node: &Node, client: &Client, cookie: u32) -> Vec<u8> {
    let message = refused(client, linux_tcb(), Refusal::NoListener);
    answer(node, from, &message, &client.get(cookie))
}

/// A NONE from the owner, which does not know the connection because a packet came to it before the ADOPT did.
fn none_of(from: u16, is_plain: bool, node: &Node, client: &Client, cookie: u32) -> Vec<u8> {
    let message = none(client, 0, is_plain);
    answer(node, from, &message, &client.get(cookie))
}

fn runs() -> u32 {
    number("BATON_FUZZ_RUNS").unwrap_or(RUNS)
}

fn random() -> (u64, Rng) {
    let time = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = number("BATON_FUZZ_SEED").unwrap_or(time);
    (seed, Rng::with_seed(seed))
}

pub fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(name: &str) -> Option<T> {
    let text = env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is not a number")),
    )
}
