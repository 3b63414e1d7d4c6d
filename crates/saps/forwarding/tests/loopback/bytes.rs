//! Bytes and ends of connections, in both directions.

use std::net::Ipv6Addr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use baton_saps::{Family, SocketOptions, StreamOptions};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::cluster::{client, on_each, until, v4};

/// Bytes in which no pattern repeats nearby.
pub fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at * 31 + at / 251 + seed * 7) as u8)
        .collect()
}

#[test]
fn a_client_is_echoed_until_it_half_closes() {
    on_each(|cluster| async move {
        let agent = cluster.agent("app1");
        let mut listening = agent.listen(0, Family::Both).await.unwrap();
        let port = listening.port();
        let app = tokio::spawn(async move {
            let mut accepted = listening.accept().await.unwrap();
            let mut all = Vec::new();
            // The end arrives behind the bytes, and bytes that the program writes after it still arrive.
            accepted.stream.read_to_end(&mut all).await.unwrap();
            accepted.stream.write_all(&all).await.unwrap();
            (accepted.peer, accepted.local)
        });
        let mut client = client(port).await;
        let sent = pattern(3_000_000, 1);
        client.write_all(&sent).await.unwrap();
        client.shutdown().await.unwrap();
        let mut found = Vec::new();
        client.read_to_end(&mut found).await.unwrap();
        assert!(found == sent);
        assert_eq!(app.await.unwrap(), (client.local_addr().unwrap(), v4(port)));
    });
}

#[test]
fn a_program_half_closes_and_goes_on_reading() {
    on_each(|cluster| async move {
        let agent = cluster.agent("app1");
        let mut listening = agent.listen(0, Family::V6).await.unwrap();
        let port = listening.port();
        let app = tokio::spawn(async move {
            let mut stream = listening.accept().await.unwrap().stream;
            stream.write_all(b"all I have").await.unwrap();
            stream.shutdown().await.unwrap();
            let mut rest = String::new();
            stream.read_to_string(&mut rest).await.unwrap();
            rest
        });
        let mut client = TcpStream::connect((Ipv6Addr::LOCALHOST, port))
            .await
            .unwrap();
        let mut found = String::new();
        client.read_to_string(&mut found).await.unwrap();
        assert_eq!(found, "all I have");
        client.write_all(b"thank you").await.unwrap();
        drop(client);
        assert_eq!(app.await.unwrap(), "thank you");
    });
}

#[test]
fn what_was_written_before_a_close_arrives() {
    on_each(|cluster| async move {
        let agent = cluster.agent("app1");
        let mut listening = agent.listen(0, Family::V4).await.unwrap();
        let mut client = client(listening.port()).await;
        let mut stream = listening.accept().await.unwrap().stream;
        let sent = pattern(60_000, 2);
        stream.write_all(&sent).await.unwrap();
        drop(stream);
        let mut found = Vec::new();
        client.read_to_end(&mut found).await.unwrap();
        assert!(found == sent);
        let io = cluster.io.as_ref().unwrap();
        until(|| (io.report().counters.finished.load(Relaxed) == 1).then_some(())).await;
        let nodes = io.report().nodes;
        assert_eq!(nodes[0].gauges.connections, 0, "{nodes:?}");
    });
}

#[test]
fn a_program_connects_from_the_cluster_address() {
    on_each(|cluster| async move {
        let server = TcpListener::bind(v4(0)).await.unwrap();
        let to = server.local_addr().unwrap();
        let agent = cluster.agent("app1");
        let options = SocketOptions {
            keepalive: Some(true),
            send_buffer: Some(50_000),
            ..SocketOptions::default()
        };
        let mut connected = agent.connect(to, options).await.unwrap();
        let (mut accepted, peer) = server.accept().await.unwrap();
        assert_eq!(peer, connected.local);
        connected.stream.write_all(b"question").await.unwrap();
        let mut question = [0; 8];
        accepted.read_exact(&mut question).await.unwrap();
        assert_eq!(&question, b"question");
        accepted.write_all(b"answer").await.unwrap();
        drop(accepted);
        let mut answer = String::new();
        connected.stream.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "answer");

        drop(server);
        let refused = agent.connect(to, SocketOptions::default()).await;
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(111));
        let counters = cluster.io.as_ref().unwrap().report().counters;
        assert_eq!(counters.not_connected.load(Relaxed), 1);
    });
}

#[test]
fn options_reach_the_clients_socket() {
    on_each(|cluster| async move {
        let agent = cluster.agent("app1");
        let mut listening = agent.listen(0, Family::V4).await.unwrap();
        let port = listening.port();
        let client = client(port).await;
        let peer = client.local_addr().unwrap().port();
        let stream = listening.accept().await.unwrap().stream;
        assert!(!keeps_alive(port, peer));
        stream.options().set(SocketOptions {
            keepalive: Some(true),
            ..SocketOptions::default()
        });
        until(|| keeps_alive(port, peer).then_some(())).await;
        drop(client);
    });
}

/// The client gets the same port again at once, and options set on its last connection come too late.
#[test]
fn options_of_a_connection_that_is_over_are_not_those_of_the_next_one() {
    on_each(|cluster| async move {
        let agent = cluster.agent("app1");
        let mut listening = agent.listen(0, Family::V4).await.unwrap();
        let port = listening.port();
        let keep = SocketOptions {
            keepalive: Some(true),
            ..SocketOptions::default()
        };
        let mut own = 0;
        let mut late = Vec::new();
        for _ in 0..20 {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_reuseaddr(true).unwrap();
            socket.bind(v4(own)).unwrap();
            let mut client = socket.connect(v4(port)).await.unwrap();
            own = client.local_addr().unwrap().port();
            let mut stream = listening.accept().await.unwrap().stream;
            late.iter()
                .for_each(|options: &StreamOptions| options.set(keep));
            // Over TCP, all frames that were sent before this byte have arrived before it.
            stream.write_all(b"x").await.unwrap();
            client.read_exact(&mut [0]).await.unwrap();
            assert!(!keeps_alive(port, own));
            // These are the last options for a connection that the client ends at the same time.
            let options = stream.options();
            SockRef::from(&client)
                .set_linger(Some(Duration::ZERO))
                .unwrap();
            drop(client);
            options.set(keep);
            late.push(options);
            stream.gone().await;
        }
    });
}

/// Whether the socket with these ports has a keepalive timer, which the kernel's table shows as timer 2.
fn keeps_alive(local: u16, peer: u16) -> bool {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let sockets = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let (local, peer) = (
        format!("0100007F:{local:04X}"),
        format!("0100007F:{peer:04X}"),
    );
    let found = sockets
        .into_iter()
        .find(|fields| fields[1] == local && fields[2] == peer);
    found.is_some_and(|fields| fields[5].starts_with("02:"))
}
