//! An agent's far end and a front over loopback, without hooks: which redirects are followed, and which sessions are
//! reset.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bed;

use std::net::SocketAddr;

use baton_redsocks::agent::{AgentStream, RedSocks};
use baton_redsocks::front::Servers;
use baton_virtual_sockets::{AppOptions, Far as _};
use eop_protocol::wire::{Head, MAGIC, Redirect};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use bed::{ANY, echo, front, to};

async fn connect(to: SocketAddr) -> AgentStream {
    RedSocks::default()
        .connect(to, AppOptions::default())
        .await
        .unwrap()
        .stream
}

/// Sends and receives at the same time, whatever the sizes.
async fn exchange(stream: AgentStream, sent: &[u8]) -> Vec<u8> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut got = Vec::new();
    let write = async {
        writer.write_all(sent).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let (_, read) = tokio::join!(write, reader.read_to_end(&mut got));
    read.unwrap();
    got
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_stream_is_redirected_before_it_begins_and_none_of_it_is_lost() {
    let behind = front(Servers::Behind(echo(1).await), None, false).0;
    let redirector = front(Servers::Others(vec![to(behind)]), None, false).0;
    let sent: Vec<u8> = (0..5_000_000u32).map(|n| (n % 251) as u8).collect();
    let expected: Vec<u8> = sent.iter().map(|byte| byte + 1).collect();
    for server in [behind, redirector] {
        assert!(exchange(connect(server).await, &sent).await == expected);
    }
    // A plain client at the same ports, and an agent at a plain server.
    let mut plain = TcpStream::connect(redirector).await.unwrap();
    plain.write_all(b"abc").await.unwrap();
    let mut got = [0; 3];
    plain.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"bcd");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_sent_to_nobody_comes_back_and_goes_to_another() {
    let nobody = TcpListener::bind(ANY).await.unwrap().local_addr().unwrap();
    let behind = front(Servers::Behind(echo(2).await), None, false).0;
    let redirector = front(Servers::Others(vec![to(nobody), to(behind)]), None, false).0;
    for _ in 0..4 {
        assert_eq!(exchange(connect(redirector).await, b"abc").await, b"cde");
    }
}

/// Starts an EOP server that reads one message, sends `then`, and closes once the client has.
async fn scripted(then: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut hello = [0; MAGIC.len() + 2];
        stream.read_exact(&mut hello).await.unwrap();
        stream.write_all(&Head::Welcome.bytes(0)).await.unwrap();
        // The message is a header and three bytes.
        let mut message = [0; 15];
        stream.read_exact(&mut message).await.unwrap();
        assert_eq!(&message[12..], b"one");
        stream.write_all(&then).await.unwrap();
        // The connection stays open until the client closes it.
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    });
    at
}

fn redirect(target: SocketAddr, taken: Option<u64>) -> Vec<u8> {
    let redirect = Redirect {
        target,
        answers: false,
        token: None,
        taken,
    };
    Head::Redirect(redirect).bytes(0)
}

fn answer(bytes: &[u8]) -> Vec<u8> {
    [&Head::normal(bytes.len() as u32)[..], bytes].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_answered_is_not_sent_again() {
    let next = front(Servers::Behind(echo(0).await), None, false).0;
    let then = [answer(b"1"), redirect(next, Some(3))].concat();
    let mut stream = connect(scripted(then).await).await;
    stream.write_all(b"one").await.unwrap();
    let mut got = [0; 1];
    stream.read_exact(&mut got).await.unwrap();
    stream.write_all(b"two").await.unwrap();
    let mut got = [0; 3];
    stream.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"two");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_followed_is_a_reset_and_not_an_end() {
    let next = front(Servers::Behind(echo(0).await), None, false).0;
    let half = answer(b"half of it")[..17].to_vec();
    for then in [redirect(next, Some(4)), half, b"no message".to_vec()] {
        let mut stream = connect(scripted(then).await).await;
        stream.write_all(b"one").await.unwrap();
        let mut got = Vec::new();
        // The session whose answer is cut off ends because its server closes when this end does.
        let (mut reader, mut writer) = tokio::io::split(stream);
        writer.shutdown().await.unwrap();
        let error = reader.read_to_end(&mut got).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
}
