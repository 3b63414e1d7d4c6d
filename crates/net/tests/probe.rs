//! Tests health probes against servers that behave and servers that do not. Needs no privileges.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use baton_net::probe::{Get, Probe, Reason, probe_here, probe_socket};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener};

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn get(address: SocketAddr) -> Probe {
    Probe::Http(Get::new("/health", address).unwrap())
}

/// Probes a server that reads the request and answers with these pieces, then closes.
async fn against(pieces: &'static [&'static str]) -> Result<(), Reason> {
    let (listener, address) = listen().await;
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 1024];
        let length = stream.read(&mut request).await.unwrap();
        assert!(request[..length].starts_with(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:"));
        for piece in pieces {
            stream.write_all(piece.as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    let outcome = probe_here(address, &get(address)).await;
    server.await.unwrap();
    outcome
}

#[tokio::test]
async fn statuses() {
    assert!(
        against(&["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"])
            .await
            .is_ok()
    );
    assert!(
        against(&["HTTP/1.0 302 Found\r\nLocation: /\r\n\r\n"])
            .await
            .is_ok()
    );
    assert!(
        against(&["HTTP/1.1 2", "04 No", " Content\r", "\n\r\n"])
            .await
            .is_ok()
    );
    assert!(
        against(&["HTTP/1.1 103 Hints\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"])
            .await
            .is_ok()
    );
    let is = |outcome, status| matches!(outcome, Err(Reason::Status(s)) if s == status);
    assert!(is(against(&["HTTP/1.1 404 No\r\n\r\n"]).await, 404));
    assert!(is(
        against(&["HTTP/1.1 503 Down\r\nRetry-After: 5\r\n\r\n"]).await,
        503
    ));
}

#[tokio::test]
async fn what_is_not_http() {
    for pieces in [&["SSH-2.0-server\r\n"][..], &[], &["HTTP/1.1 200 OK\r\n"]] {
        let outcome = against(pieces).await;
        assert!(
            matches!(outcome, Err(Reason::NotHttp(_))),
            "{pieces:?}: {outcome:?}"
        );
    }
}

#[tokio::test]
async fn a_header_without_end() {
    let (listener, address) = listen().await;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX: ").await;
        while stream.write_all(&[b'a'; 4096]).await.is_ok() {}
    });
    let outcome = probe_here(address, &get(address)).await;
    assert!(matches!(outcome, Err(Reason::NotHttp(_))), "{outcome:?}");
}

#[tokio::test]
async fn connections() {
    let (listener, address) = listen().await;
    assert!(probe_here(address, &Probe::Tcp).await.is_ok());
    drop(listener);
    for what in [Probe::Tcp, get(address)] {
        let Err(Reason::Connection(error)) = probe_here(address, &what).await else {
            panic!("nobody listens")
        };
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}

#[tokio::test]
async fn a_server_at_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("web.sock");
    let get = get("192.0.2.100:80".parse().unwrap());
    let outcome = probe_socket(&path, b"first\n", &get).await;
    let Err(reason @ Reason::Socket(..)) = outcome else {
        panic!("{outcome:?}")
    };
    let text = reason.to_string();
    assert!(
        text.contains("web.sock") && !text.contains("root"),
        "{text}"
    );
    let listener = UnixListener::bind(&path).unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 1024];
        let mut length = 0;
        while !request[..length].ends_with(b"\r\n\r\n") {
            length += stream.read(&mut request[length..]).await.unwrap();
        }
        let expected = b"first\nGET /health HTTP/1.1\r\nHost: 192.0.2.100\r\n";
        assert!(request[..length].starts_with(expected));
        let response = b"HTTP/1.1 204 No Content\r\n\r\n";
        stream.write_all(response).await.unwrap();
        listener
    });
    assert!(probe_socket(&path, b"first\n", &get).await.is_ok());
    let listener = server.await.unwrap();
    assert!(probe_socket(&path, b"first\n", &Probe::Tcp).await.is_ok());
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).await.unwrap();
    assert_eq!(said, b"first\n");
}
