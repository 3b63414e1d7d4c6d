//! Keep-alive probes of clients that have not asked for anything yet.

use etherparse::TcpOptionElement as Element;

use crate::{options::linux_later, prelude::*};

const PROBE: Counted<'_> = &[("cs_probe", 1)];
const CLAIM: Counted<'_> = &[("cs_claim", 1)];

/// A probe has the sequence number before the next one, with or without a meaningless byte. The answer acknowledges
/// up to the next one.
#[test]
fn a_probe_before_the_first_request_is_answered() {
    let node = Node::cs();
    for payload in ["", "x"] {
        let client = Client::fresh();
        let cookie = node.cookie(&client);
        let probe = probe(&client, cookie).payload(payload);
        for _ in 0..3 {
            let seen = node.run(&probe.frame()).expect(Tx, PROBE);
            let tcp = seen.packet().tcp().unwrap();
            assert_eq!(tcp.flags(), "A");
            assert_eq!(tcp.header.sequence_number, cookie.wrapping_add(1));
            assert_eq!(tcp.header.acknowledgment_number, client.isn.wrapping_add(1));
            assert_eq!(tcp.header.window_size, 64_240 >> WINDOW_SCALE);
            assert!(tcp.payload.is_empty());
            assert_eq!(seen.packet().to(), *client.address.ip());
        }
        // The answer keeps no state, and the client's request begins the connection as usual.
        assert!(node.tcb(&client).is_none());
        node.run(&client.get(cookie).frame())
            .expect(Tx, &[("cs_adopt", 1)]);
    }
}

/// The answer echoes the client's timestamp and repeats the cluster's timestamp that the client echoed, also under
/// another cookie key. A client would not accept an earlier one.
#[test]
fn timestamps_do_not_go_back() {
    let node = Node::cs();
    let client = Client::fresh();
    let seen = node.run(&client.syn().frame()).expect(Tx, &[("cs_syn", 1)]);
    let syn_ack = seen.packet().tcp().unwrap();
    let cookie = syn_ack.header.sequence_number;
    let (ours, _) = timestamps(&seen);
    node.wait(std::time::Duration::from_secs(75));
    node.change(|settings| {
        let [current, _] = settings.cookie_key;
        settings.cookie_key = [[5, 99], current];
    });
    let probe = probe(&client, cookie).options(linux_later(777_777, ours));
    let (later, echo) = timestamps(&node.run(&probe.frame()).expect(Tx, PROBE));
    assert_eq!(echo, 777_777);
    assert_eq!(later, ours);
}

#[test]
fn without_options_it_has_none() {
    let node = Node::cs();
    let client = Client::fresh();
    let syn = client.syn().options([]);
    let seen = node.run(&syn.frame()).expect(Tx, &[("cs_syn", 1)]);
    let cookie = seen.packet().tcp().unwrap().header.sequence_number;
    let probe = probe(&client, cookie).options([]);
    let seen = node.run(&probe.frame()).expect(Tx, PROBE);
    let tcp = seen.packet().tcp().unwrap();
    assert_eq!(tcp.header.window_size, 64_240, "no scale was offered");
    assert_eq!(seen.frame.len(), 54);
}

/// Probes are answered as long as the cookie is valid. After that the connection server cannot tell whose they are.
#[test]
fn as_long_as_the_cookie_is_good() {
    let node = Node::cs();
    for (periods, counted) in [(1, PROBE), (2, CLAIM)] {
        let client = Client::fresh();
        let cookie = node.cookie(&client);
        node.wait(COOKIE_PERIOD * periods);
        node.run(&probe(&client, cookie).frame())
            .expect(Tx, counted);
    }
}

/// A segment without the right cookie, or one that is no probe of a client that waits, gets no answer from here.
#[test]
fn what_is_no_probe() {
    let node = Node::cs();
    let others: [(&str, fn(Segment) -> Segment); 4] = [
        ("another cookie", |mut probe| {
            probe.ack ^= 0x100;
            probe
        }),
        ("another number", |probe| {
            let seq = probe.seq.wrapping_sub(1);
            probe.seq(seq)
        }),
        ("data", |probe| probe.payload("xy")),
        ("FIN", |probe| probe.flags("FA")),
    ];
    for (name, change) in others {
        let client = Client::fresh();
        let packet = change(probe(&client, node.cookie(&client)));
        node.run(&packet.frame()).expect_of(name, Tx, CLAIM);
    }
    // Where the server speaks first, a data server has the connection from the handshake on and answers its probes.
    let client = Client::of(SMTP);
    let cookie = node.cookie(&client);
    node.run(&probe(&client, cookie).frame()).expect(Tx, CLAIM);
}

/// A connection that has begun has an owner, and the owner answers its probes.
#[test]
fn of_a_connection_that_has_begun_it_is_the_owners() {
    let node = Node::cs();
    let client = Client::fresh();
    let cookie = node.cookie(&client);
    node.run(&client.get(cookie).frame())
        .expect(Tx, &[("cs_adopt", 1)]);
    let packet = probe(&client, cookie);
    let bytes = packet.packet().len() as u64;
    node.run(&packet.frame())
        .expect(Tx, &[("cs_forward", 1), ("cs_forward_bytes", bytes)]);
    node.forget(&client);
    node.run(&packet.frame()).expect(Tx, CLAIM);
}

/// A window update has the numbers of the handshake's last packet. It needs no answer.
#[test]
fn a_window_update_stays_silent() {
    let node = Node::cs();
    let client = Client::fresh();
    let cookie = node.cookie(&client);
    for _ in 0..3 {
        node.run(&client.ack(cookie).frame())
            .expect(Drop, &[("cs_handshake_ack", 1)]);
    }
}

fn probe(client: &Client, cookie: u32) -> Segment {
    client.ack(cookie).seq(client.isn)
}

fn timestamps(seen: &crate::node::Seen) -> (u32, u32) {
    let tcp = seen.packet().tcp().unwrap();
    let mut found = tcp.header.options_iterator().filter_map(Result::ok);
    found
        .find_map(|element| match element {
            Element::Timestamp(ours, echo) => Some((ours, echo)),
            _ => None,
        })
        .unwrap()
}
