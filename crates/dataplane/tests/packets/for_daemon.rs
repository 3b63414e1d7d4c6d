//! Messages for the daemon, at all three programs. What a program cannot verify goes no further.

use std::{
    collections::BTreeSet,
    net::Ipv4Addr,
    os::fd::AsFd as _,
    thread::sleep,
    time::{Duration, Instant},
};

use baton_abi::{
    BUDGET_BURST_NS, BUDGET_COST_NS, LCCP_HELLO, LCCP_MAX_BODY, LCCP_MAX_RESUME,
    LCCP_RECEPTOR_DAEMON, LCCP_RESUME, LCCP_VERSION, LccpHeader,
};
use baton_dataplane::{Refusals, sys};
use baton_wire::NodePair;
use etherparse::{EtherType, IpNumber};

use crate::prelude::*;

const PASSED: Counted<'_> = &[("lccp_to_daemon", 1)];
const TAG: Counted<'_> = &[("lccp_bad_tag", 1)];
const SHORT: Counted<'_> = &[("lccp_short", 1)];
/// The address of a node from which no other test has messages.
const SENDER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 90);
const OTHER_SENDER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 91);
const MAD_SENDER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 92);

/// Runs the test on one node of each kind, and tells it which kind it is.
fn each(test: fn(&str, &Node)) {
    let _host = own_host();
    test("connection server", &Node::fresh_cs());
    test("data server", &Node::fresh_ds());
    test("both", &Node::both());
    test("switch", &Node::switch());
}

fn own_address(node: &Node) -> Ipv4Addr {
    let address = node.plane().settings().unwrap().address;
    let [.., a, b, c, d] = address;
    Ipv4Addr::new(a, b, c, d)
}

/// A message with this command and body from a node to this one, as the frame in which it comes.
fn message(node: &Node, from: Ipv4Addr, command: u32, body: &[u8]) -> Vec<u8> {
    changed(node, from, command, body, |_| ())
}

fn changed(
    node: &Node,
    from: Ipv4Addr,
    command: u32,
    body: &[u8],
    change: impl Fn(&mut LccpHeader),
) -> Vec<u8> {
    let to = own_address(node);
    let mut header = LccpHeader {
        version: LCCP_VERSION as u8,
        receptor: LCCP_RECEPTOR_DAEMON as u8,
        command: command as u8,
        be_body_length: (body.len() as u16).to_be(),
        be_clock: node.now().as_nanos().to_be(),
        ..LccpHeader::default()
    };
    change(&mut header);
    let message = sealed(header, &key().lccp(), NodePair { from, to }, body);
    let packet = ip_packet(IpNumber(253), from, to, &message);
    ethernet([2, 0, 0, 0, 0, 90], CS_MAC, EtherType::IPV4, &packet)
}

fn body(bytes: usize) -> Vec<u8> {
    (1..=bytes).map(|at| (at % 251) as u8).collect()
}

#[test]
fn bodies_of_every_length() {
    each(|which, node| {
        for bytes in (1..=130).chain([1000, 1023, 1024]) {
            let frame = message(node, SENDER, LCCP_HELLO, &body(bytes));
            let seen = node.run(&frame);
            seen.check(Pass, PASSED)
                .unwrap_or_else(|error| panic!("{which}, {bytes} bytes: {error}"));
            assert_eq!(seen.frame, frame);
        }
        let longest = body(LCCP_MAX_RESUME as usize);
        node.run(&message(node, SENDER, LCCP_RESUME, &longest))
            .expect(Pass, PASSED);
        node.run(&message(
            node,
            SENDER,
            LCCP_RESUME,
            &body(LCCP_MAX_RESUME as usize + 1),
        ))
        .expect(Drop, SHORT);
        node.run(&message(
            node,
            SENDER,
            LCCP_HELLO,
            &body(LCCP_MAX_BODY as usize + 1),
        ))
        .expect(Drop, SHORT);
    });
}

#[test]
fn a_bit_of_the_body() {
    each(|which, node| {
        for (bytes, at) in [
            (1, 0),
            (31, 30),
            (32, 31),
            (33, 32),
            (100, 63),
            (1024, 1023),
        ] {
            let mut frame = message(node, SENDER, LCCP_HELLO, &body(bytes));
            frame[LCCP + 80 + at] ^= 0x80;
            node.run(&frame)
                .check(Drop, TAG)
                .unwrap_or_else(|error| panic!("{which}, byte {at} of {bytes}: {error}"));
        }
        // What fills up the last piece of the body is not part of it: a body with one more zero byte has another tag.
        let mut frame = message(node, SENDER, LCCP_HELLO, &body(31));
        frame[LCCP + 5] = 32;
        frame.push(0);
        let frame = patched(frame, IP + 2, &[0, 20 + 80 + 32]);
        node.run(&frame).expect(Drop, TAG);
    });
}

#[test]
fn a_body_that_is_not_all_there() {
    each(|_, node| {
        let frame = message(node, SENDER, LCCP_HELLO, &body(64));
        let cut = patched(
            frame[..frame.len() - 1].to_vec(),
            IP + 2,
            &[0, 20 + 80 + 63],
        );
        node.run(&cut).expect(Drop, SHORT);
    });
}

#[test]
fn of_other_nodes() {
    each(|_, node| {
        let frame = message(node, SENDER, LCCP_HELLO, &body(40));
        node.run(&frame).expect(Pass, PASSED);
        let from_another = patched(frame.clone(), IP + 12, &OTHER_SENDER.octets());
        node.run(&from_another).expect(Drop, TAG);
        // The daemon's sockets receive nothing that is sent to another address.
        let to_another = node.run(&patched(frame, IP + 16, &OTHER_SENDER.octets()));
        assert!(to_another.counted.contains_key("lccp_not_ours"));
        assert_eq!(to_another.counted.get("lccp_to_daemon"), None);
    });
}

#[test]
fn fragments() {
    each(|_, node| {
        let frame = message(node, SENDER, LCCP_HELLO, &body(40));
        for fragment in [[0x20, 0], [0, 1]] {
            node.run(&patched(frame.clone(), IP + 6, &fragment))
                .expect(Drop, &[("fragment", 1)]);
        }
    });
}

/// The daemon learns that there is a node whose messages are refused. It learns nothing about strangers.
#[test]
fn what_was_refused_of_a_node() {
    each(|_, node| {
        let mut refused = node.plane().refused_nodes().unwrap();
        refused.follow(&BTreeSet::from([SENDER])).unwrap();
        let mut look = |of| refused.look(of).unwrap();
        let body = body(40);
        node.run(&message(node, SENDER, LCCP_HELLO, &body));
        assert_eq!(look(SENDER), None);

        let version = |header: &mut LccpHeader| header.version = 7;
        node.run(&changed(node, SENDER, LCCP_HELLO, &body, version))
            .expect(Drop, &[("lccp_bad_version", 1)]);
        let of_version = Refusals {
            version: Some(7),
            ..Refusals::default()
        };
        assert_eq!(look(SENDER), Some(of_version));
        assert_eq!(look(SENDER), None, "nothing new");

        let mut forged = message(node, SENDER, LCCP_HELLO, &body);
        tag_again(&mut forged, &other_key().lccp());
        node.run(&forged).expect(Drop, TAG);
        let of_tag = Refusals {
            bad_tag: true,
            ..Refusals::default()
        };
        assert_eq!(look(SENDER), Some(of_tag));

        let behind = |header: &mut LccpHeader| shift(header, -3600);
        node.run(&changed(node, SENDER, LCCP_HELLO, &body, behind))
            .expect(Drop, &[("lccp_stale", 1)]);
        let (ahead, _) = look(SENDER).unwrap().stale.unwrap();
        assert!(
            (-3602..=-3599).contains(&(ahead / 1_000_000_000)),
            "{ahead}"
        );

        let mut stranger = message(node, OTHER_SENDER, LCCP_HELLO, &body);
        tag_again(&mut stranger, &other_key().lccp());
        node.run(&stranger).expect(Drop, TAG);
        assert_eq!(look(OTHER_SENDER), None);
    });
}

/// If one node sends too many messages, only some of them pass. Messages of other nodes pass as before, and after a
/// pause so do those of this node.
#[test]
fn a_sender_has_a_budget() {
    each(|which, node| {
        let burst = u64::from(BUDGET_BURST_NS / BUDGET_COST_NS);
        let mad = message(node, MAD_SENDER, LCCP_HELLO, &body(40));
        let plane = node.plane();
        let of_ds = plane.as_data_server().map(|server| &server.ingress);
        let of_cs = plane.as_connection_server().map(|server| &server.xdp);
        let of_switch = plane.as_switch().map(|switch| &switch.xdp);
        let program = of_ds.or(of_cs).or(of_switch).unwrap();
        let runs = 4 * burst;
        node.look();
        let begun = Instant::now();
        sys::run_on_frame(program.as_fd(), &mad, None, runs as u32).unwrap();
        let meanwhile = begun.elapsed().as_nanos() as u64 / u64::from(BUDGET_COST_NS);
        let counted = node.moved();
        // On a very slow machine the budget grows as fast as messages come, and none is over it.
        let count = |name| counted.get(name).copied().unwrap_or_default();
        let (passed, over) = (count("lccp_to_daemon"), count("lccp_over_budget"));
        assert_eq!(passed + over, runs, "{which}");
        // The budget grows while the test runs, and the clock advances in ticks, so more may pass than the burst.
        assert!(passed >= burst, "{which}: {counted:?}");
        assert!(passed <= burst + meanwhile + 4000, "{which}: {counted:?}");

        node.run(&message(node, SENDER, LCCP_HELLO, &body(40)))
            .expect(Pass, PASSED);
        sleep(Duration::from_millis(50));
        node.run(&mad).expect(Pass, PASSED);
    });
}
