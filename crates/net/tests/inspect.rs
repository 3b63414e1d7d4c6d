//! Tests what can be found out about a host without changing anything on it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::Duration;

use baton_net::listeners::{Listener, listeners};
use baton_net::offload::{Offloads, offloads};
use baton_net::queues::{Queues, queues};
use baton_net::{Netlink, who_has};
use common::{Namespace, may_run};
use socket2::{Domain, Protocol, Socket, Type};

#[test]
fn listeners_plain_mptcp_and_only_ipv6() {
    if !may_run("listeners_plain_mptcp_and_only_ipv6") {
        return;
    }
    let host = Namespace::new("listen");
    host.run(|| {
        let plain = TcpListener::bind("127.0.0.1:80").unwrap();
        let only_ipv6 = Socket::new(Domain::IPV6, Type::STREAM, None).unwrap();
        only_ipv6.set_only_v6(true).unwrap();
        listen(&only_ipv6, (Ipv6Addr::UNSPECIFIED, 82).into());
        let found = listeners().unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        let first = on(&found, 80);
        assert_eq!(first.address, plain.local_addr().unwrap());
        assert!(!first.mptcp && !first.only_ipv6 && first.backlog > 0);
        assert!(on(&found, 82).only_ipv6);

        let Ok(mptcp) = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)) else {
            eprintln!("mptcp: skipped: this kernel has none");
            return;
        };
        listen(&mptcp, (Ipv4Addr::UNSPECIFIED, 81).into());
        let found = listeners().unwrap();
        assert!(on(&found, 81).mptcp, "{found:?}");
        assert!(!on(&found, 80).mptcp, "{found:?}");
    });
}

#[test]
fn an_adapter_and_its_offloads() {
    if !may_run("an_adapter_and_its_offloads") {
        return;
    }
    let host = Namespace::new("adapter");
    host.ip("link add veth0 mtu 1400 type veth peer name veth1");
    host.block_on(|| async {
        let netlink = Netlink::open().unwrap();
        let adapter = netlink.adapter("veth0").await.unwrap();
        assert!(adapter.ethernet && !adapter.up && !adapter.carrier);
        assert_eq!((adapter.mtu, adapter.kind.as_deref()), (1400, Some("veth")));
        let lo = netlink.adapter("lo").await.unwrap();
        assert!(!lo.ethernet && lo.up && lo.kind.is_none());
        let missing = netlink.adapter("eth9").await.unwrap_err().to_string();
        assert!(
            missing.contains("eth9") && missing.contains("veth1"),
            "{missing}"
        );

        let found = offloads("veth0").await.unwrap();
        assert!(found != Offloads::default() && !found.large_receive());
        assert!(offloads("eth9").await.is_err());
        // A veth has separate queues for receiving and sending.
        assert_eq!(queues("veth0").await.unwrap(), Queues::default());
        assert!(queues("eth9").await.is_err());
    });
    host.ip("link set veth0 up");
    host.ip("link set veth1 up");
    host.block_on(|| async {
        let adapter = Netlink::open().unwrap().adapter("veth0").await.unwrap();
        assert!(adapter.up && adapter.carrier);
    });
}

#[test]
fn who_answers_for_an_address() {
    if !may_run("who_answers_for_an_address") {
        return;
    }
    let (asks, has) = (Namespace::new("asks"), Namespace::new("has"));
    asks.ip(&format!(
        "link add veth0 type veth peer name veth0 netns {}",
        has.name
    ));
    for host in [&asks, &has] {
        host.ip("link set veth0 up");
    }
    has.ip("addr add 192.0.2.100/24 dev veth0");
    let mac = has.block_on(|| async {
        Netlink::open()
            .unwrap()
            .link_named("veth0")
            .await
            .unwrap()
            .mac
    });
    asks.block_on(|| async {
        let link = Netlink::open().unwrap().link_named("veth0").await.unwrap();
        let ask = |address| who_has(&link, address, Duration::from_secs(1)).unwrap();
        // A busy machine may answer late.
        let answers = (0..20).map(|_| ask(Ipv4Addr::new(192, 0, 2, 100)));
        let answered = answers.into_iter().find(|answer| !answer.is_empty());
        assert_eq!(answered.unwrap_or_default(), [mac]);
        assert!(ask(Ipv4Addr::new(192, 0, 2, 101)).is_empty());
    });
}

fn listen(socket: &Socket, address: SocketAddr) {
    socket.bind(&address.into()).unwrap();
    socket.listen(16).unwrap();
}

fn on(found: &[Listener], port: u16) -> &Listener {
    found
        .iter()
        .find(|listener| listener.address.port() == port)
        .unwrap()
}
