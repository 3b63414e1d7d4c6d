//! Tests the next hop, announcements, and messages between nodes, on a LAN of two namespaces.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use baton_net::announce::{announce, arp};
use baton_net::{Error, Hop, LccpSocket, Link, Netlink};
use common::{Lan, Namespace, may_run};

const PATIENCE: Duration = Duration::from_secs(5);

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn link(namespace: &Namespace) -> Link {
    namespace.block_on(async || Netlink::open().unwrap().link_named("eth0").await.unwrap())
}

#[test]
fn next_hops() {
    if !may_run("next_hops") {
        return;
    }
    let lan = Lan::new();
    lan.client.ip("route add 10.99.0.0/16 via 10.88.0.2");
    let (own, peer) = (link(&lan.client), link(&lan.server));
    lan.client.block_on(async || {
        let netlink = Netlink::open().unwrap();
        assert_eq!(
            netlink
                .next_hop(address("10.88.0.1"), PATIENCE)
                .await
                .unwrap(),
            Hop::Local
        );
        assert_eq!(
            netlink
                .next_hop(address("127.0.0.9"), PATIENCE)
                .await
                .unwrap(),
            Hop::Local
        );

        for (target, routed) in [("10.88.0.2", false), ("10.99.3.4", true)] {
            // The second time the neighbor entry exists already; the answer is the same.
            for _ in 0..2 {
                let hop = netlink.next_hop(address(target), PATIENCE).await.unwrap();
                let Hop::Next(hop) = hop else {
                    panic!("{target} is not local")
                };
                assert_eq!(
                    (hop.link_index, hop.source_mac, hop.mac),
                    (own.index, own.mac, peer.mac)
                );
                assert_eq!((hop.source, hop.routed), (address("10.88.0.1"), routed));
            }
        }

        let silent = netlink
            .next_hop(address("10.88.0.77"), Duration::from_millis(50))
            .await;
        let error = silent.unwrap_err();
        assert!(matches!(error, Error::Unresolved { .. }), "{error}");
        let error = netlink
            .next_hop(address("203.0.113.1"), PATIENCE)
            .await
            .unwrap_err();
        assert!(error.to_string().contains("203.0.113.1"), "{error}");
    });
}

#[test]
fn a_program_that_was_stopped_has_not_waited_for_its_next_hop() {
    if !may_run("a_program_that_was_stopped_has_not_waited_for_its_next_hop") {
        return;
    }
    let lan = Lan::new();
    lan.client.block_on(async || {
        let netlink = Netlink::open().unwrap();
        let look = netlink.next_hop(address("10.88.0.78"), Duration::from_millis(500));
        // The kernel asks a second time after a second, and gets an answer. Nothing in this thread runs until shortly
        // before that.
        let stop = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            lan.server.ip("address add 10.88.0.78/24 dev eth0");
            std::thread::sleep(Duration::from_millis(800));
        };
        let (hop, ()) = tokio::join!(look, stop);
        assert!(matches!(hop, Ok(Hop::Next(_))), "{hop:?}");
    });
}

#[test]
fn packets_leave_by_the_route_of_their_source() {
    if !may_run("packets_leave_by_the_route_of_their_source") {
        return;
    }
    let lan = Lan::new();
    let own = link(&lan.client);
    let leaves = |source: &str| {
        let source = source.parse().unwrap();
        let anywhere = Ipv4Addr::new(198, 51, 100, 1);
        lan.client
            .block_on(async || {
                let netlink = Netlink::open().unwrap();
                netlink.interface_from(source, anywhere).await
            })
            .map_err(|error| error.errno())
    };
    assert_eq!(leaves("10.88.0.1"), Err(Some(libc::ENETUNREACH)));
    lan.client.ip("route add default via 10.88.0.2");
    assert_eq!(leaves("10.88.0.1"), Ok(Some(own.index)));

    // Another table routes one source address, which is ignored until an interface holds that address.
    lan.client.ip("route add default dev lo table 100");
    lan.client.ip("rule add from 10.88.0.100 table 100");
    assert_eq!(leaves("10.88.0.100"), Ok(Some(own.index)));
    lan.client.ip("address add 10.88.0.100/32 dev lo");
    assert_eq!(leaves("10.88.0.100"), Ok(Some(1)));
    assert_eq!(leaves("10.88.0.1"), Ok(Some(own.index)));

    lan.client.ip("address add 198.51.100.1/32 dev lo");
    assert_eq!(leaves("10.88.0.1"), Ok(None));
}

#[test]
fn next_hop_over_ipv6() {
    if !may_run("next_hop_over_ipv6") {
        return;
    }
    let lan = Lan::new();
    lan.client.ip("address add fd88::1/64 dev eth0 nodad");
    lan.server.ip("address add fd88::2/64 dev eth0 nodad");
    let peer = link(&lan.server);
    lan.client.block_on(async || {
        let netlink = Netlink::open().unwrap();
        let hop = netlink
            .next_hop(address("fd88::2"), PATIENCE)
            .await
            .unwrap();
        let Hop::Next(hop) = hop else {
            panic!("not local")
        };
        assert_eq!(
            (hop.mac, hop.source, hop.routed),
            (peer.mac, address("fd88::1"), false)
        );
    });
}

/// Each form of the announcement alone moves the address in a neighbor's table.
#[test]
fn announcements_are_heeded() {
    if !may_run("announcements_are_heeded") {
        return;
    }
    let lan = Lan::new();
    let sender = link(&lan.server);
    let vip = Ipv4Addr::new(10, 88, 0, 100);
    for (form, frame) in ["request", "reply"]
        .into_iter()
        .zip(arp::gratuitous(sender.mac, vip))
    {
        lan.client.ip(&format!(
            "neighbor replace {vip} dev eth0 lladdr 02:00:00:00:00:99 nud stale"
        ));
        lan.server.block_on(async || {
            let twice = NonZeroU32::new(2).unwrap();
            announce(&sender, &[frame], twice, Duration::from_millis(20))
                .await
                .unwrap();
        });
        let known = sender.mac.map(|byte| format!("{byte:02x}")).join(":");
        let start = Instant::now();
        while !lan
            .client
            .ip(&format!("neighbor show {vip}"))
            .contains(&known)
        {
            assert!(start.elapsed() < PATIENCE, "the {form} was not heeded");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The sender's queue has no room for a single frame until the queue is removed.
#[test]
fn an_announcement_outlives_a_full_queue() {
    if !may_run("an_announcement_outlives_a_full_queue") {
        return;
    }
    let lan = Lan::new();
    let sender = link(&lan.server);
    let vip = Ipv4Addr::new(10, 88, 0, 100);
    let frames = arp::gratuitous(sender.mac, vip);
    let tc = |arguments: &str| {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        lan.server.exec("tc", &arguments);
    };
    lan.client.ip(&format!(
        "neighbor replace {vip} dev eth0 lladdr 02:00:00:00:00:99 nud stale"
    ));
    tc("qdisc add dev eth0 root bfifo limit 1");
    lan.server.block_on(async || {
        announce(&sender, &frames, NonZeroU32::MIN, PATIENCE)
            .await
            .unwrap();
    });
    let known = sender.mac.map(|byte| format!("{byte:02x}")).join(":");
    let neighbor = || lan.client.ip(&format!("neighbor show {vip}"));
    assert!(!neighbor().contains(&known), "the queue was not full");

    let full = Duration::from_millis(200);
    lan.server.block_on(async || {
        let thrice = NonZeroU32::new(3).unwrap();
        let announced = announce(&sender, &frames, thrice, full);
        let emptied = async {
            tokio::time::sleep(full / 2).await;
            tc("qdisc del dev eth0 root");
        };
        tokio::join!(announced, emptied).0.unwrap();
    });
    let start = Instant::now();
    while !neighbor().contains(&known) {
        assert!(start.elapsed() < PATIENCE, "it was never heeded");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_announcement_on_a_missing_link_is_an_error() {
    if !may_run("an_announcement_on_a_missing_link_is_an_error") {
        return;
    }
    let namespace = Namespace::new("nolink");
    let gone = Link {
        index: 7777,
        name: "eth7".into(),
        mac: [2; 6],
        mtu: 1500,
        up: true,
    };
    namespace.block_on(async || {
        let frames = arp::gratuitous(gone.mac, Ipv4Addr::new(10, 88, 0, 100));
        let error = announce(&gone, &frames, NonZeroU32::MIN, PATIENCE)
            .await
            .unwrap_err();
        assert!(error.to_string().contains("eth7"), "{error}");
    });
}

#[test]
fn messages_between_nodes() {
    if !may_run("messages_between_nodes") {
        return;
    }
    let lan = Lan::new();
    let (client, server) = (Ipv4Addr::new(10, 88, 0, 1), Ipv4Addr::new(10, 88, 0, 2));
    // A socket stays in the namespace in which it was made, so one thread can drive both.
    common::runtime().block_on(async {
        let runtime = tokio::runtime::Handle::current();
        let open = |namespace: &Namespace, own| {
            namespace.run(|| {
                let _entered = runtime.enter();
                LccpSocket::open(own, 253).unwrap()
            })
        };
        let (at_client, at_server) = (open(&lan.client, client), open(&lan.server, server));
        let mut buffer = vec![0; LccpSocket::MAX_PACKET];
        for length in [0, 80, 1184, 60_000] {
            let message: Vec<u8> = (0..length).map(|i| i as u8).collect();
            at_client.send_to(&message, server).await.unwrap();
            let received = at_server.recv_from(&mut buffer).await.unwrap();
            assert_eq!(
                (received.sender, received.payload),
                (client, &message[..]),
                "{length}"
            );
        }
        // A message can have waited since the socket was last empty, and no longer.
        let empty = Instant::now();
        assert!(at_server.try_recv_from(&mut buffer).unwrap().is_none());
        at_client.send_to(b"waits", server).await.unwrap();
        let sent = Instant::now();
        std::thread::sleep(Duration::from_millis(20));
        let at_least = sent.elapsed();
        let received = at_server.recv_from(&mut buffer).await.unwrap();
        assert!(received.waited >= at_least && received.waited <= empty.elapsed());
        at_server.send_to(b"answer", client).await.unwrap();
        let mut short = [0; 22];
        assert!(matches!(
            at_client.recv_from(&mut short).await,
            Err(Error::Malformed(_))
        ));
        at_server.send_to(b"another", client).await.unwrap();
        assert_eq!(
            at_client.recv_from(&mut buffer).await.unwrap().payload,
            b"another"
        );

        let error = at_client
            .send_to(b"", Ipv4Addr::new(203, 0, 113, 1))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("203.0.113.1"), "{error}");
    });
}

#[test]
fn a_socket_needs_an_address_of_this_host() {
    if !may_run("a_socket_needs_an_address_of_this_host") {
        return;
    }
    let namespace = Namespace::new("bind");
    namespace.block_on(async || {
        let error = LccpSocket::open(Ipv4Addr::new(10, 88, 0, 1), 253)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("10.88.0.1") && error.contains("not on this host"),
            "{error}"
        );
    });
}
