//! Several cluster addresses, and several I/O servers, of which the configuration allows only one.

use std::net::{IpAddr, Ipv4Addr};

use baton_saps::{Family, SocketOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::cluster::{Cluster, agent, key, on_each, until, v4};

const FIRST: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 1, 1));
const SECOND: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 1, 2));

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

#[test]
fn of_two_io_servers_one_dies_and_what_is_the_others_goes_on() {
    on_each(|cluster| async move {
        let network = cluster.network;
        let mut dies = Cluster::at(network, vec![FIRST]);
        let lives = Cluster::at(network, vec![SECOND]);
        let agent = agent(network, "app1", vec![dies.at, lives.at], key(1));
        let mut listening = agent.listen(0, Family::V4).await.unwrap();
        let port = listening.port();
        until(|| (agent.ports() == [(port, Family::V4, 2)]).then_some(())).await;
        let mut lost = TcpStream::connect((FIRST, port)).await.unwrap();
        let mut broken = listening.accept().await.unwrap().stream;
        let mut kept = TcpStream::connect((SECOND, port)).await.unwrap();
        let mut stream = listening.accept().await.unwrap().stream;

        dies.stop();
        let error = lost.read(&mut [0]).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(104));
        let error = broken.read(&mut [0]).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(102));
        stream.write_all(b"on").await.unwrap();
        kept.read_exact(&mut [0; 2]).await.unwrap();
        let _client = TcpStream::connect((SECOND, port)).await.unwrap();
        assert_eq!(
            listening.accept().await.unwrap().local,
            (SECOND, port).into()
        );
        // Connections go through the I/O server that is left, so their server sees its address.
        let server = TcpListener::bind(v4(0)).await.unwrap();
        let to = server.local_addr().unwrap();
        let called = agent.connect(to, SocketOptions::default()).await.unwrap();
        assert_eq!(called.local.ip(), SECOND);

        // Until the agent notices, both I/O servers seem to be there.
        until(|| (agent.ports() == [(port, Family::V4, 1)]).then_some(())).await;
        dies.start_again().await;
        until(|| (agent.ports() == [(port, Family::V4, 2)]).then_some(())).await;
        let _client = TcpStream::connect((FIRST, port)).await.unwrap();
        assert_eq!(
            listening.accept().await.unwrap().local,
            (FIRST, port).into()
        );
    });
}
