//! Which connection server a packet goes to.

use super::goes_to;
use crate::prelude::*;

const SYN: Counted<'_> = &[("switch_syn", 1)];
const FORWARD: Counted<'_> = &[("switch_forward", 1)];
const KEPT: Counted<'_> = &[("switch_kept", 1)];
const BEGUN: Counted<'_> = &[("switch_begun", 1)];
const NOBODY: Counted<'_> = &[("switch_nobody", 1)];

/// All packets of a connection go to the same connection server.
#[test]
fn a_connection_has_one() {
    let node = Node::switch();
    let mut shares = [0; 3];
    for _ in 0..300 {
        let client = Client::fresh();
        let server = goes_to(&node, &client.syn().frame(), SYN);
        let packets = [
            client.ack(7),
            client.get(7),
            client.later(7, GET.len(), 5000).flags("FA"),
            client.later(7, 0, 0).flags("R"),
            biggest(&client, 7),
        ];
        for packet in packets {
            assert_eq!(goes_to(&node, &packet.frame(), FORWARD), server);
        }
        shares[usize::from(server)] += 1;
    }
    // Each gets a third on average. By chance, one of the three has less than 60 of 300 once in 10^7 times.
    assert!(shares.iter().all(|share| *share > 60), "{shares:?}");
}

/// The client's address and both ports decide the connection server, and nothing else does.
#[test]
fn what_tells_connections_apart() {
    let node = Node::switch();
    node.set_places(|at| {
        let server = (at % 2) as u16;
        (server, server)
    });
    let client = Client::fresh();
    let of = |client: Client| goes_to(&node, &client.syn().frame(), SYN);
    let ways = |vary: &dyn Fn(u16) -> Client| {
        let mut found: Vec<_> = (0..64).map(|by| of(vary(by))).collect();
        found.sort();
        found.dedup();
        found.len()
    };
    let port = |by: u16| {
        let mut other = client;
        other.address.set_port(2000 + by);
        other
    };
    let address = |by: u16| {
        let mut other = client;
        other.address.set_ip([203, 0, 113, by as u8].into());
        other
    };
    assert_eq!((ways(&port), ways(&address)), (2, 2));
    let isn = |by: u16| Client {
        isn: by.into(),
        ..client
    };
    assert_eq!(ways(&isn), 1);
}

/// A client that does not know the cluster's hash key cannot choose ports that all lead to one connection server.
#[test]
fn another_seed_is_another_place() {
    let (one, other) = (Node::switch(), Node::switch());
    let clients: Vec<Client> = (0..200).map(|_| Client::fresh()).collect();
    let servers = |node: &Node| -> Vec<u16> {
        let syns = clients.iter().map(|client| client.syn().frame());
        syns.map(|frame| goes_to(node, &frame, SYN)).collect()
    };
    let before = servers(&one);
    assert_eq!(before, servers(&other), "every switch finds the same");
    other.change(|settings| settings.hash_seed ^= 1);
    let moved = (before.iter().zip(servers(&other))).filter(|(a, b)| **a != *b);
    let moved = moved.count();
    // Two thirds of the connections move on average.
    assert!((100..170).contains(&moved), "{moved}");
}

/// A connection server took the place of another one, which still works: connections stay where they began.
#[test]
fn connections_stay_where_they_began() {
    let node = Node::switch();
    node.set_places(|_| (0, 0));
    let old = Client::fresh();
    assert_eq!(goes_to(&node, &old.syn().frame(), SYN), 0);
    node.set_places(|_| (1, 0));
    let new = Client::fresh();
    assert_eq!(goes_to(&node, &new.syn().frame(), SYN), 1);
    for _ in 0..3 {
        assert_eq!(goes_to(&node, &old.get(7).frame(), KEPT), 0);
        assert_eq!(goes_to(&node, &new.get(7).frame(), BEGUN), 1);
    }

    // A third connection server comes. Connections that began at the second one stay there.
    node.set_places(|_| (2, 1));
    let newest = Client::fresh();
    assert_eq!(goes_to(&node, &newest.syn().frame(), SYN), 2);
    assert_eq!(goes_to(&node, &newest.get(7).frame(), BEGUN), 2);
    assert_eq!(goes_to(&node, &new.get(7).frame(), KEPT), 1);

    // The second connection server goes, and its whole place is the third's.
    node.set_places(|_| (2, 2));
    for client in [old, new, newest] {
        assert_eq!(goes_to(&node, &client.get(7).frame(), FORWARD), 2);
    }
}

/// A connection that went on elsewhere while its connection server was away does not go back to it when it returns.
#[test]
fn who_comes_back_finds_no_connections() {
    let node = Node::switch();
    node.set_places(|_| (0, 0));
    node.set_places(|_| (1, 0));
    let client = Client::fresh();
    assert_eq!(goes_to(&node, &client.syn().frame(), SYN), 1);
    assert_eq!(goes_to(&node, &client.get(7).frame(), BEGUN), 1);
    node.set_places(|_| (0, 0));
    assert_eq!(goes_to(&node, &client.get(7).frame(), FORWARD), 0);
    node.set_places(|_| (1, 0));
    assert_eq!(goes_to(&node, &client.get(7).frame(), KEPT), 0);
}

/// A client uses its ports again after their place has changed: the new connection begins at the new connection
/// server.
#[test]
fn a_new_connection_on_old_ports() {
    let node = Node::switch();
    node.set_places(|_| (0, 0));
    let client = Client::fresh();
    goes_to(&node, &client.syn().frame(), SYN);
    node.set_places(|_| (1, 0));
    assert_eq!(goes_to(&node, &client.get(7).frame(), KEPT), 0);
    assert_eq!(goes_to(&node, &client.again().syn().frame(), SYN), 1);
    assert_eq!(goes_to(&node, &client.again().get(7).frame(), BEGUN), 1);
}

#[test]
fn nobody_is_there() {
    let node = Node::switch();
    node.set_places(|_| (9, 9));
    let client = Client::fresh();
    node.run(&client.syn().frame()).expect(Drop, NOBODY);
    node.run(&client.get(7).frame()).expect(Drop, NOBODY);
    node.set_places(|_| (u16::MAX, u16::MAX));
    node.run(&client.syn().frame()).expect(Drop, NOBODY);
}

/// A frame that would not fit the LAN inside another one goes alone. Only a client that exceeds the MSS sends such
/// frames.
#[test]
fn what_is_too_big_goes_alone() {
    let node = Node::switch();
    let client = Client::fresh();
    let most = usize::from(MSS) + 100 - 14;
    let fits = client.get(7).options([]).payload(vec![b'x'; most]);
    goes_to(&node, &fits.frame(), FORWARD);
    let more = client.get(7).options([]).payload(vec![b'x'; most + 1]);
    let frame = more.frame();
    let seen = node
        .run(&frame)
        .expect(Tx, &[("switch_forward", 1), ("switch_plain", 1)]);
    let packet = seen.packet();
    assert_eq!(packet.to(), CLUSTER);
    assert!((0..3).any(|server| packet.ethernet.destination == ds_mac(server)));
    assert_eq!(seen.frame[12..], frame[12..]);
}
