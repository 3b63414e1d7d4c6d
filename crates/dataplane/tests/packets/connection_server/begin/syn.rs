//! SYN: every legal layout of options gets the right SYN-ACK, and the cookie in it keeps what was offered until the
//! request comes.

use std::time::Duration;

use etherparse::TcpOptionElement as Element;

use super::layouts::{Case, LAYOUTS};
use crate::{options::mss, prelude::*};
use baton_wire::{Message, TcbPart, WindowScales};

#[test]
fn every_layout_of_options() {
    let node = Node::cs();
    for case in LAYOUTS {
        check(&node, case);
    }
}

/// The MSS that a client announces, and the MSS that a data server is told. The second is never larger than the
/// first, except that the kernel makes no socket with less than 536.
const MSS_KEPT: &[(u16, u16)] = &[
    (0, 536),
    (1, 536),
    (256, 536),
    (536, 536),
    (1199, 536),
    (1200, 1200),
    (1300, 1300),
    (1360, 1360),
    (1400, 1400),
    (1440, 1440),
    (1452, 1440),
    (1459, 1440),
    (1460, 1460),
    (8959, 1460),
    (8960, 8960),
    (9000, 8960),
    (65535, 8960),
];

#[test]
fn every_mss() {
    let node = Node::cs();
    for &(announced, kept) in MSS_KEPT {
        let client = Client::fresh();
        let syn = client.syn().options(mss(announced));
        let answer = node.run(&syn.frame()).expect(Tx, &[("cs_syn", 1)]);
        let cookie = answer.packet().tcp().unwrap().header.sequence_number;
        assert_eq!(
            told(&node, &client, cookie).mss.get(),
            kept,
            "MSS {announced}"
        );
    }
}

#[test]
fn syn_ack_says_what_is_configured() {
    let node = Node::cs();
    node.change(|settings| (settings.mss, settings.rcv_wscale) = (8860, 14));
    let answer = node
        .run(&Client::fresh().syn().frame())
        .expect(Tx, &[("cs_syn", 1)]);
    let elements = elements(&answer);
    assert!(elements.contains(&Element::MaximumSegmentSize(8860)));
    assert!(elements.contains(&Element::WindowScale(14)));
}

#[test]
fn a_retransmitted_syn_gets_the_same_answer() {
    let node = Node::cs();
    let client = Client::fresh();
    assert_eq!(node.cookie(&client), node.cookie(&client));
}

/// Each connection's timestamps have an offset of their own, which stays the same as long as the key does.
#[test]
fn our_timestamps_count_milliseconds() {
    let node = Node::cs();
    let [client, other] = [Client::fresh(), Client::fresh()];
    let [first, elsewhere] = [client, other].map(|client| timestamp(&node, &client));
    assert!(
        first.abs_diff(elsewhere) > 1_000_000,
        "{first} and {elsewhere}"
    );
    node.wait(Duration::from_secs(3600));
    let passed = timestamp(&node, &client.again()).wrapping_sub(first);
    assert!((3_600_000..3_660_000).contains(&passed), "{passed}");
    node.change(|settings| settings.cookie_key[0][0] ^= 1);
    assert!(timestamp(&node, &client).abs_diff(first) > 10_000_000);
}

fn check(node: &Node, case: &Case) {
    let fresh = Client::fresh();
    let syn = (case.syn)(fresh.syn());
    let client = Client {
        isn: syn.seq,
        ..fresh
    };
    let frame = padded(syn.frame(), case.padding);

    let seen = node.run(&frame);
    seen.check(Tx, &[("cs_syn", 1)])
        .and_then(|()| syn_ack_is_right(node, case, &client, &seen))
        .unwrap_or_else(|error| panic!("{}: {error}\n{seen:?}", case.name));

    let cookie = seen.packet().tcp().unwrap().header.sequence_number;
    let expected = TcbPart {
        mss: case.mss.try_into().unwrap(),
        scales: case.scale.map(|scale| WindowScales {
            client: scale.try_into().unwrap(),
            cluster: WINDOW_SCALE.try_into().unwrap(),
        }),
        sack: case.sack,
        aware: false,
        attempt: 0,
        cwnd: 0,
        resume: 0,
    };
    assert_eq!(told(node, &client, cookie), expected, "{}", case.name);
}

/// The TCB part that a data server is told when the client's request comes with this cookie.
fn told(node: &Node, client: &Client, cookie: u32) -> TcbPart {
    let seen = node.run(&client.get(cookie).frame());
    assert!(matches!(seen.verdict, Tx | Redirect), "{seen:?}");
    match sent(node, &seen).message {
        Message::Adopt {
            flow: of,
            tcb,
            asker,
        } => {
            assert_eq!((of, asker), (flow(client), Some(short(CS))));
            tcb
        }
        other => panic!("not an ADOPT: {other:?}"),
    }
}

fn syn_ack_is_right(node: &Node, case: &Case, client: &Client, seen: &Seen) -> Result<(), String> {
    let packet = seen.packet();
    let tcp = packet.tcp()?;
    let same = |what: &str, same: bool| {
        if same {
            Ok(())
        } else {
            Err(format!("{what}: {tcp:?}"))
        }
    };

    let addressed = (packet.ethernet.source, packet.ethernet.destination);
    same("Ethernet addresses", addressed == (CS_MAC, CLIENT_MAC))?;
    same(
        "addresses",
        ends(&packet, &tcp) == (client.service, client.address),
    )?;
    same("flags", tcp.flags() == "SA")?;
    let acknowledged = client.isn.wrapping_add(1);
    same(
        "acknowledgement",
        tcp.header.acknowledgment_number == acknowledged,
    )?;
    same("window", tcp.header.window_size == 64_240)?;
    same("payload", tcp.payload.is_empty())?;
    same(
        "fragment",
        packet.ip.dont_fragment && packet.ip.options.is_empty(),
    )?;

    let offered = [
        Some(Element::MaximumSegmentSize(MSS)),
        case.sack
            .then_some(Element::SelectiveAcknowledgementPermitted),
        case.scale.map(|_| Element::WindowScale(WINDOW_SCALE)),
        case.timestamps
            .then(|| Element::Timestamp(timestamp(node, client), echo(client, case))),
    ];
    let mut elements = elements(seen);
    for option in offered.into_iter().flatten() {
        let at = elements.iter().position(|element| alike(element, &option));
        elements.remove(at.ok_or_else(|| format!("no {option:?} in {elements:?}"))?);
    }
    same(
        "only what was offered",
        elements.iter().all(|e| *e == Element::Noop),
    )?;

    let times = if case.timestamps { 12 } else { 0 };
    let sack = if case.sack && !case.timestamps { 4 } else { 0 };
    let scale = if case.scale.is_some() { 4 } else { 0 };
    let bytes = 14 + 20 + 20 + 4 + times + sack + scale;
    same("length", seen.frame.len() == bytes && packet.padding == 0)
}

fn elements(seen: &Seen) -> Vec<Element> {
    let tcp = seen.packet().tcp().unwrap();
    tcp.header
        .options_iterator()
        .map(|element| element.unwrap())
        .collect()
}

/// Whether two options are equal. A timestamp of the cluster may be up to a second older than expected.
fn alike(found: &Element, expected: &Element) -> bool {
    match (found, expected) {
        (Element::Timestamp(value, echo), Element::Timestamp(now, expected)) => {
            now.wrapping_sub(*value) < 1000 && echo == expected
        }
        _ => found == expected,
    }
}

/// The timestamp value that the client sends in its SYN.
fn echo(client: &Client, case: &Case) -> u32 {
    let tcp_options = (case.syn)(client.syn()).options;
    let at = tcp_options.windows(2).position(|w| w == [8, 10]).unwrap() + 2;
    u32::from_be_bytes(tcp_options[at..at + 4].try_into().unwrap())
}

/// The timestamp of the cluster in the SYN-ACK to a SYN from this client's address and port.
fn timestamp(node: &Node, client: &Client) -> u32 {
    let seen = node.run(&client.syn().frame()).expect(Tx, &[("cs_syn", 1)]);
    let ours = elements(&seen)
        .into_iter()
        .find_map(|element| match element {
            Element::Timestamp(value, _) => Some(value),
            _ => None,
        });
    ours.unwrap()
}
