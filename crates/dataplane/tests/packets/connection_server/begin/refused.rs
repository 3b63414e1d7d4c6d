//! REFUSED: the owner has no listener, so the request goes to another data server.

use baton_abi::{ADOPT_ATTEMPTS, DataServer, LCCP_TCB_SACK, Pool};
use baton_wire::{Message, Refusal, TcbPart};

use crate::{connection_server::forward::adopted, prelude::*};

const REFUSED: Counted<'_> = &[("cs_refused", 1)];
const MISMATCH: Counted<'_> = &[("lccp_mismatch", 1)];

#[test]
fn another_data_server_gets_it() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    let frame = refusal(&node, 0, &client, cookie, 0);
    let seen = node.run(&frame).expect(Tx, REFUSED);
    let sent = sent(&node, &seen);
    let next = node.tcb(&client).unwrap().owner;
    assert_ne!(next, 0);
    assert_eq!((sent.from, sent.to), (CS, ds(next)));
    assert_eq!(seen.packet().ethernet.source, CS_MAC);
    assert_eq!(seen.packet().ethernet.destination, ds_mac(next));
    let tcb = TcbPart {
        attempt: 1,
        ..linux_tcb()
    };
    assert_eq!(sent.message, adopt(&client, tcb));
    assert_eq!(sent.packet, client.get(cookie).packet());
    assert_eq!(seen.frame.len(), frame.len());

    // Later packets go to the new owner.
    let ack = client.later(cookie, GET.len(), 1);
    let seen = node.run(&ack.frame());
    assert_eq!(seen.packet().ethernet.destination, ds_mac(next));
}

/// Once the client has something of the response, its request was not refused: the refusal is a late one.
#[test]
fn what_is_being_answered_is_not_refused() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    let frame = refusal(&node, 0, &client, cookie, 0);
    node.run(&client.later(cookie, GET.len(), 1).frame());
    node.run(&frame).expect(Drop, MISMATCH);
    assert_eq!(node.tcb(&client).unwrap().owner, 0);
}

#[test]
fn the_same_from_the_previous_key_and_with_padding() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    let frame = padded(refusal(&node, 0, &client, cookie, 0), 4);
    node.share(other_key().lccp(), Some(key().lccp()));
    let seen = node.run(&frame).expect(Tx, REFUSED);
    assert_eq!(seen.packet().padding, 4);
}

#[test]
fn the_next_may_be_elsewhere() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    node.set_choices(0, &[1, 1, 1]);
    let elsewhere = DataServer {
        ifindex: 77,
        ..data_server(1)
    };
    node.plane().set_data_server(1, &elsewhere).unwrap();
    let frame = refusal(&node, 0, &client, cookie, 0);
    let seen = node.run(&frame).expect(Redirect, REFUSED);
    assert_eq!(sent(&node, &seen).to, ds(1));
}

#[test]
fn every_one_of_three_is_asked() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    let mut asked = vec![0];
    for attempt in 0..2 {
        let owner = node.tcb(&client).unwrap().owner;
        let frame = refusal(&node, owner, &client, cookie, attempt);
        node.run(&frame).expect(Tx, REFUSED);
        asked.push(node.tcb(&client).unwrap().owner);
    }
    asked.sort_unstable();
    asked.dedup();
    assert!(asked.len() > 1, "{asked:?}");
}

/// The daemon resets the client. The REFUSED did not come from the client, so its frame does not show the client's
/// MAC address: the kernel finds the way.
#[test]
fn refused_by_all() {
    const BY_ALL: Counted<'_> = &[("cs_refused", 1), ("cs_refused_by_all", 1)];
    let ways: [(&str, fn(&Node), u8); 4] = [
        ("after the last attempt", |_| (), ADOPT_ATTEMPTS as u8 - 1),
        (
            "nobody to choose",
            |node| node.set_choices(0, &[65535; 3]),
            0,
        ),
        (
            "the next is not configured",
            |node| node.set_choices(0, &[9; 3]),
            0,
        ),
        ("no choices any more", without_choices, 0),
    ];
    for (name, prepare, attempt) in ways {
        let node = Node::cs();
        let (client, cookie) = adopted(&node);
        let frame = refusal(&node, 0, &client, cookie, attempt);
        prepare(&node);
        let seen = node.run(&frame);
        seen.expect_of(name, Pass, BY_ALL);
        assert_eq!(seen.frame, frame, "{name}");
        assert!(node.tcb(&client).is_none(), "{name}");
    }
}

/// If there is only one data server, it is asked again, because its listener may have been restarting.
#[test]
fn the_only_data_server_is_asked_again() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    node.set_choices(0, &[0, 0, 0]);
    for attempt in 0..ADOPT_ATTEMPTS as u8 - 1 {
        let frame = refusal(&node, 0, &client, cookie, attempt);
        let seen = node.run(&frame).expect(Tx, REFUSED);
        assert_eq!(sent(&node, &seen).to, ds(0));
    }
}

#[test]
fn only_the_owner_can_refuse() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    for from in [1, 2, 9] {
        let frame = refusal(&node, from, &client, cookie, 0);
        node.run(&frame).expect(Drop, MISMATCH);
    }
    assert_eq!(node.tcb(&client).unwrap().owner, 0);
}

/// A REFUSED that the network has duplicated counts once: when the second one arrives, the entry has another owner.
#[test]
fn a_duplicate_counts_once() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    let frame = refusal(&node, 0, &client, cookie, 0);
    node.run(&frame).expect(Tx, REFUSED);
    let owner = node.tcb(&client).unwrap().owner;
    node.run(&frame).expect(Drop, MISMATCH);
    assert_eq!(node.tcb(&client).unwrap().owner, owner);
}

#[test]
fn of_an_unknown_flow_or_service() {
    let node = Node::cs();
    let stranger = Client::fresh();
    node.run(&refusal(&node, 0, &stranger, 7, 0))
        .expect(Drop, MISMATCH);
    let (client, cookie) = adopted(&node);
    let service = "10.77.0.101:80".parse().unwrap();
    let elsewhere = Client { service, ..client };
    node.run(&refusal(&node, 0, &elsewhere, cookie, 0))
        .expect(Drop, MISMATCH);
}

/// The rest of the message's TCB part goes on unchanged.
#[test]
fn the_tcb_part_goes_on() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    let tcb = TcbPart {
        mss: 536.try_into().unwrap(),
        scales: None,
        sack: false,
        aware: false,
        attempt: 3,
        cwnd: 345,
        resume: 0x1122_3344_5566,
    };
    let message = refused(&client, tcb, Refusal::NotAssigned);
    let packet = client.get(cookie).packet();
    let frame = to_cs(0, &message, node.now(), &key().lccp(), &packet);
    let seen = node.run(&frame).expect(Tx, REFUSED);
    let attempt = 4;
    let tcb = TcbPart { attempt, ..tcb };
    assert_eq!(sent(&node, &seen).message, adopt(&client, tcb));
    assert_eq!(
        u32::from(node.tcb(&client).unwrap().options) & LCCP_TCB_SACK,
        LCCP_TCB_SACK
    );
}

/// The ADOPT to the next data server. It always names the connection server as the asker, because the connection
/// server wants to hear of a refusal.
fn adopt(client: &Client, tcb: TcbPart) -> Message {
    Message::Adopt {
        flow: flow(client),
        tcb,
        asker: Some(short(CS)),
    }
}

/// The REFUSED of a data server that cannot adopt this client's request.
fn refusal(node: &Node, from: u16, client: &Client, cookie: u32, attempt: u8) -> Vec<u8> {
    let message = refused(
        client,
        TcbPart {
            attempt,
            ..linux_tcb()
        },
        Refusal::NoListener,
    );
    let packet = client.get(cookie).packet();
    to_cs(from, &message, node.now(), &key().lccp(), &packet)
}

fn without_choices(node: &Node) {
    let empty = Pool {
        choices: 0,
        ..node.routing().pool(0).unwrap()
    };
    node.routing().set_pool(0, &empty).unwrap();
}
