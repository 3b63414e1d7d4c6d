//! A connection that breaks is reported at its other end, and nowhere else.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use baton_saps::{Family, SocketOptions};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::bytes::pattern;
use super::cluster::{client, key, on_each, until, v4};

const RESET: Option<i32> = Some(104);
const NETWORK_RESET: Option<i32> = Some(102);

#[test]
fn a_clients_reset_is_reported_by_the_next_call() {
    on_each(|cluster| async move {
        let agent = cluster.agent("app1");
        let mut listening = agent.listen(0, Family::V4).await.unwrap();
        let client = client(listening.port()).await;
        let mut stream = listening.accept().await.unwrap().stream;
        SockRef::from(&client)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
        drop(client);
        let error = stream.read(&mut [0; 10]).await.unwrap_err();
        assert_eq!(error.raw_os_error(), RESET);
        assert_eq!(stream.read(&mut [0; 10]).await.unwrap(), 0);
        let error = stream.write(b"more").await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(32));
    });
}

#[test]
fn a_reset_is_noticed_while_nobody_reads() {
    on_each(|cluster| async move {
        let agent = cluster.agent("app1");
        let mut listening = agent.listen(0, Family::V4).await.unwrap();
        let client = client(listening.port()).await;
        let stream = listening.accept().await.unwrap().stream;
        // This is more than all buffers on the way hold.
        let flood = async {
            loop {
                client.writable().await.unwrap();
                let _ = client.try_write(&pattern(50_000, 1));
            }
        };
        let stalled = tokio::time::timeout(Duration::from_millis(500), flood).await;
        assert!(stalled.is_err());
        SockRef::from(&client)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
        drop(client);
        stream.gone().await;
    });
}

#[test]
fn a_programs_reset_reaches_the_client() {
    on_each(|cluster| async move {
        let agent = cluster.agent("app1");
        let mut listening = agent.listen(0, Family::V4).await.unwrap();
        let mut client = client(listening.port()).await;
        let stream = listening.accept().await.unwrap().stream;
        stream.reset();
        let error = client.read(&mut [0; 10]).await.unwrap_err();
        assert_eq!(error.raw_os_error(), RESET);
        let counters = cluster.io.as_ref().unwrap().report().counters;
        assert_eq!(counters.reset_by_node.load(Relaxed), 1);
    });
}

#[test]
fn a_node_that_is_gone_leaves_no_listener_and_no_connection() {
    on_each(|cluster| async move {
        let agent = cluster.agent("app1");
        let mut listening = agent.listen(0, Family::Both).await.unwrap();
        let port = listening.port();
        let mut client = client(port).await;
        let accepted = listening.accept().await.unwrap();
        drop((listening, agent));
        let error = client.read(&mut [0; 10]).await.unwrap_err();
        assert_eq!(error.raw_os_error(), RESET);
        let io = cluster.io.as_ref().unwrap();
        until(|| io.report().nodes.is_empty().then_some(())).await;
        let refused = TcpStream::connect(v4(port)).await.unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(111));
        drop(accepted);
    });
}

#[test]
fn an_io_server_that_comes_back_is_asked_to_listen_again() {
    on_each(|mut cluster| async move {
        let agent = cluster.agent("app1");
        let mut listening = agent.listen(0, Family::Both).await.unwrap();
        let port = listening.port();
        let mut before = client(port).await;
        let mut stream = listening.accept().await.unwrap().stream;
        cluster.stop();
        let error = stream.read(&mut [0; 10]).await.unwrap_err();
        assert_eq!(error.raw_os_error(), NETWORK_RESET);
        let error = before.read(&mut [0; 10]).await.unwrap_err();
        assert_eq!(error.raw_os_error(), RESET);

        cluster.start_again().await;
        let io = cluster.io.as_ref().unwrap();
        until(|| (!io.report().ports.is_empty()).then_some(())).await;
        let mut after = client(port).await;
        let mut stream = listening.accept().await.unwrap().stream;
        stream.write_all(b"again").await.unwrap();
        let mut found = [0; 5];
        after.read_exact(&mut found).await.unwrap();
        assert_eq!(&found, b"again");
    });
}

#[test]
fn a_node_with_another_key_is_no_node() {
    on_each(|cluster| async move {
        let agent = cluster.agent_with_key("app1", key(2));
        let error = agent.listen(0, Family::Both).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(100));
        let error = agent.connect(v4(9), SocketOptions::default()).await;
        assert_eq!(error.unwrap_err().raw_os_error(), Some(100));
        assert!(cluster.io.as_ref().unwrap().report().nodes.is_empty());
    });
}
