//! Which nodes listen on a port, and which of them gets a connection.

use std::net::{IpAddr, Ipv4Addr};

use baton_saps::{Family, SocketOptions};
use tokio::net::{TcpListener, TcpStream};

use super::cluster::{Cluster, client, on_each, v4};

/// The cluster addresses of a cluster that has two of one IP version.
const FIRST: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 1, 1));
const SECOND: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 1, 2));

#[test]
fn nodes_that_listen_on_one_port_take_turns() {
    on_each(|cluster| async move {
        let first = cluster.agent("app1");
        let mut first = first.listen(0, Family::V4).await.unwrap();
        let port = first.port();
        let second = cluster.agent("app2");
        let mut second = second.listen(port, Family::V4).await.unwrap();
        for _ in 0..5 {
            let clients = [client(port).await, client(port).await];
            let (one, two) = (
                first.accept().await.unwrap(),
                second.accept().await.unwrap(),
            );
            let mut peers = [one.peer, two.peer];
            peers.sort_unstable();
            let mut expected = clients.map(|client| client.local_addr().unwrap());
            expected.sort_unstable();
            assert_eq!(peers, expected);
        }
        // The only listener gets all connections.
        drop(second);
        for _ in 0..3 {
            let client = client(port).await;
            let accepted = first.accept().await.unwrap();
            assert_eq!(accepted.peer, client.local_addr().unwrap());
        }
    });
}

#[test]
fn a_port_is_given_up_and_had_again() {
    on_each(|cluster| async move {
        let agent = cluster.agent("app1");
        let listening = agent.listen(0, Family::Both).await.unwrap();
        let port = listening.port();
        let again = agent.listen(port, Family::V6).await.unwrap_err();
        assert_eq!(again.raw_os_error(), Some(98));
        drop(listening);
        let mut listening = agent.listen(port, Family::V4).await.unwrap();
        let client = client(port).await;
        let accepted = listening.accept().await.unwrap();
        assert_eq!(accepted.peer, client.local_addr().unwrap());
        drop(listening);
        let io = cluster.io.as_ref().unwrap();
        super::cluster::until(|| io.report().ports.is_empty().then_some(())).await;
        assert!(TcpStream::connect(v4(port)).await.is_err());
    });
}

#[test]
fn a_port_that_the_io_servers_host_has_is_in_use() {
    on_each(|cluster| async move {
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = other.local_addr().unwrap().port();
        let agent = cluster.agent("app1");
        let error = agent.listen(port, Family::Both).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(98));
    });
}

#[test]
fn one_listener_is_at_every_cluster_address() {
    on_each(|cluster| async move {
        let cluster = Cluster::at(cluster.network, vec![FIRST, SECOND]);
        let agent = cluster.agent("app1");
        let mut listening = agent.listen(0, Family::V4).await.unwrap();
        for address in [FIRST, SECOND] {
            let to = (address, listening.port());
            let _client = TcpStream::connect(to).await.unwrap();
            assert_eq!(listening.accept().await.unwrap().local, to.into());
        }
        // A program connects from the first cluster address.
        let server = TcpListener::bind(v4(0)).await.unwrap();
        let to = server.local_addr().unwrap();
        let called = agent.connect(to, SocketOptions::default()).await.unwrap();
        assert_eq!(called.local.ip(), FIRST);
        // Without a cluster address of the IP version, a program cannot listen.
        let none = agent.listen(0, Family::V6).await.unwrap_err();
        assert_eq!(none.raw_os_error(), Some(99));
    });
}
