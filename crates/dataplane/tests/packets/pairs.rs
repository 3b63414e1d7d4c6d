//! Each two nodes share a key of their own. Whoever has the keys of one data server can neither speak for another
//! node nor give commands.

use std::{net::Ipv4Addr, time::Duration};

use baton_abi::{DataServer, Ring, short_address};
use baton_wire::{
    Keys, LccpKey, Message, NodePair, Order, Refusal, Verb, YieldAnswer, decode, encode,
};
use etherparse::{EtherType, IpNumber};

use crate::prelude::*;

const TAG: Counted<'_> = &[("lccp_bad_tag", 1)];
const STRANGER: Counted<'_> = &[("lccp_stranger", 1)];
const NOT_ALLOWED: Counted<'_> = &[("lccp_not_allowed", 1)];
const REFUSED: Counted<'_> = &[("ds_refused", 1)];
const ISN: u32 = 7;

fn pair(one: Ipv4Addr, other: Ipv4Addr) -> LccpKey {
    key().0.pair(one, other)
}

/// Data server 0, which hears the connection server, itself and data server 1, and does not hear data server 2. Data
/// server 1 has only its own keys.
fn at_ds() -> Node {
    let node = Node::ds();
    node.share_with(&[
        (CS, pair(CS, ds(0)), true),
        (ds(0), pair(ds(0), ds(0)), false),
        (ds(1), pair(ds(1), ds(0)), false),
    ]);
    node
}

/// Runs a message from one node to another, with a client's request if its command carries a packet.
fn thrown(node: &Node, from: Ipv4Addr, to: Ipv4Addr, key: LccpKey, message: &Message) -> Seen {
    let client = message.carries().map(|_| Client::fresh().get(ISN).packet());
    carried(node, (from, to), key, message, &client.unwrap_or_default())
}

fn carried(
    node: &Node,
    (from, to): (Ipv4Addr, Ipv4Addr),
    key: LccpKey,
    message: &Message,
    packet: &[u8],
) -> Seen {
    let bytes = encode(message, packet, node.now(), &key, NodePair { from, to });
    let packet = ip_packet(IpNumber(253), from, to, &bytes);
    node.run(&ethernet(ds_mac(1), CS_MAC, EtherType::IPV4, &packet))
}

/// Checks that the receiver can open what came out under the key that it shares with the sender, and that no other
/// key opens it. Returns the message.
#[track_caller]
fn opens(node: &Node, seen: &Seen, from: Ipv4Addr, to: Ipv4Addr) -> Message {
    let outer = seen.packet();
    assert_eq!((outer.from(), outer.to()), (from, to));
    let nodes = NodePair { from, to };
    let window = Duration::from_secs(5);
    let open = |key| decode(&outer.body, nodes, &Keys::only(key), node.now(), window);
    for (one, other) in [(from, from), (to, to), (from, ds(2)), (to, ds(2))] {
        assert!(open(pair(one, other)).is_err(), "{one} and {other}");
    }
    open(pair(from, to)).unwrap().message
}

#[test]
fn nobody_speaks_for_the_connection_server_by_the_keys_of_a_data_server() {
    let _host = own_host();
    let node = at_ds();
    let client = Client::fresh();
    let packet = client.get(ISN).packet();
    let run = |key| carried(&node, (CS, ds(0)), key, &adopt(&client), &packet);
    run(pair(CS, ds(0))).expect(Redirect, REFUSED);
    // These are all keys that data server 1 has: those that it shares with each other node, and its own.
    for other in [CS, ds(0), ds(1), ds(2), SWITCH] {
        run(pair(ds(1), other)).expect(Drop, TAG);
    }
}

#[test]
fn nor_for_another_data_server() {
    let _host = own_host();
    let node = at_ds();
    let client = Client::fresh();
    let packet = client.get(ISN).packet();
    let run = |from, key| carried(&node, (from, ds(0)), key, &adopt(&client), &packet);
    // The message is accepted, though no way is known to the node that it names.
    let taken: Counted<'_> = &[("ds_no_way", 1), ("ds_refused", 1)];
    run(ds(1), pair(ds(1), ds(0))).expect(Drop, taken);
    run(ds(0), pair(ds(1), ds(0))).expect(Drop, TAG);
    // No key is shared with data server 2, whatever key the message is sealed with.
    for key in [pair(ds(1), ds(0)), pair(ds(2), ds(0)), pair(ds(0), ds(0))] {
        run(ds(2), key).expect(Drop, STRANGER);
    }
}

#[test]
fn a_data_server_with_only_its_own_keys_gives_no_commands() {
    let _host = own_host();
    let node = at_ds();
    let client = Client::fresh();
    let (packet, flow) = (client.get(ISN).packet(), flow(&client));
    let run = |from, message: &Message| {
        let packet = message.carries().map_or(&[][..], |_| &packet);
        carried(&node, (from, ds(0)), pair(from, ds(0)), message, packet)
    };
    let number = 1;
    let verb = Verb::Drain;
    let commands = [
        Message::Yield { flow, next: None },
        Message::Order(Order { number, verb }),
    ];
    for command in &commands {
        run(ds(1), command).expect(Drop, NOT_ALLOWED);
        let seen = run(CS, command);
        assert!(!seen.counted.contains_key("lccp_not_allowed"), "{seen:?}");
    }
    // What data servers say to each other is accepted. Here it finds no connection.
    let answer = YieldAnswer::Kept;
    let said = [
        adopt(&client),
        claim(&client, 0),
        forward(&client),
        Message::Alive {
            turned: false,
            dead: false,
        },
        Message::Yielded { flow, answer },
        Message::Sync { last: 3 },
    ];
    for message in &said {
        let seen = run(ds(1), message);
        assert!(!seen.counted.contains_key("lccp_not_allowed"), "{seen:?}");
        assert!(!seen.counted.contains_key("lccp_bad_tag"), "{seen:?}");
    }
}

#[test]
fn a_data_server_seals_for_each_receiver() {
    let _host = own_host();
    let node = at_ds();
    let client = Client::fresh();
    let packet = client.get(ISN).packet();
    let run = |from, message: &Message| {
        carried(&node, (from, ds(0)), pair(from, ds(0)), message, &packet)
    };
    // The answer is turned round to the sender, to which no way is known.
    let asked = Message::Adopt {
        flow: flow(&client),
        tcb: linux_tcb(),
        asker: None,
    };
    let seen = run(ds(1), &asked).expect(Redirect, REFUSED);
    opens(&node, &seen, ds(0), ds(1));
    let alive = thrown(
        &node,
        CS,
        ds(0),
        pair(CS, ds(0)),
        &Message::Alive {
            turned: false,
            dead: false,
        },
    );
    let alive = alive.expect(Redirect, &[("ds_alive", 1)]);
    assert_eq!(
        opens(&node, &alive, ds(0), CS),
        Message::Alive {
            turned: true,
            dead: false,
        }
    );

    let way = |to: Ipv4Addr, mac| DataServer {
        key: pair(ds(0), to).words(),
        ..peer(mac)
    };
    node.data_server().set_peer(CS, &way(CS, CS_MAC)).unwrap();
    node.data_server()
        .set_peer(ds(1), &way(ds(1), ds_mac(1)))
        .unwrap();
    // The answer goes to the node that the message names, which is not its sender.
    let seen = run(ds(1), &adopt(&client)).expect(Redirect, REFUSED);
    opens(&node, &seen, ds(0), CS);
    // The CLAIM goes on to the next data server.
    let ring = Ring {
        next: short_address(ds(1)),
        length: 3,
        missing: 0,
    };
    node.data_server().set_ring(0, &ring).unwrap();
    let seen = run(CS, &claim(&client, 0)).expect(Redirect, &[("ds_claim_passed_on", 1)]);
    assert_eq!(opens(&node, &seen, ds(0), ds(1)), claim(&client, 1));
}

#[test]
fn the_connection_server_hears_each_data_server_under_its_own_key() {
    let node = Node::fresh_cs();
    let all = [0, 1, 2].map(|index| {
        let key = pair(CS, ds(index));
        let way = DataServer {
            key: key.words(),
            ..data_server(index)
        };
        node.plane().set_data_server(index, &way).unwrap();
        (ds(index), key, false)
    });
    node.share_with(&all);
    let client = Client::fresh();
    let cookie = node.cookie(&client);
    let request = client.get(cookie);
    let seen = node.run(&request.frame()).expect(Tx, &[("cs_adopt", 1)]);
    let owner = node.tcb(&client).unwrap().owner;
    opens(&node, &seen, CS, ds(owner));

    let refused = refused(&client, linux_tcb(), Refusal::NoListener);
    let run = |key| carried(&node, (ds(owner), CS), key, &refused, &request.packet());
    for other in (0..3).filter(|other| *other != owner) {
        run(pair(ds(other), CS)).expect(Drop, TAG);
        run(pair(ds(other), ds(owner))).expect(Drop, TAG);
    }
    assert_eq!(node.tcb(&client).unwrap().owner, owner);
    let seen = run(pair(ds(owner), CS)).expect(Tx, &[("cs_refused", 1)]);
    let next = node.tcb(&client).unwrap().owner;
    assert_ne!(next, owner);
    opens(&node, &seen, CS, ds(next));
}
