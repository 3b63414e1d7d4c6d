use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use baton_tls::{Acceptor, Certificates, Handshake, Progress, TicketKeys};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::super::super::socket::{read, write_all};
use super::*;
use crate::client::end_by_reset;

type Client = StreamOwned<ClientConnection, std::net::TcpStream>;

/// Makes a session between a client, which runs in a thread, and a stream.
async fn connect<T: Send + 'static>(
    client: impl FnOnce(Client) -> T + Send + 'static,
) -> (ClientStream, thread::JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (acceptor, root) = certificate();
    let thread = thread::spawn(move || {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_root_certificates(root).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let name = ServerName::try_from("a.example").unwrap();
        let session = ClientConnection::new(Arc::new(config), name).unwrap();
        let socket = std::net::TcpStream::connect(address).unwrap();
        client(StreamOwned::new(session, socket))
    });
    let (mut socket, _) = listener.accept().await.unwrap();
    end_by_reset(&socket);
    let mut handshake = Handshake::new(&acceptor);
    let (mut client_in, mut output) = (Vec::new(), Vec::new());
    let session = loop {
        let progress = handshake.advance(&mut client_in, &mut output).unwrap();
        write_all(&socket, &mut output).await.unwrap();
        match progress {
            Progress::Done(session) => break session,
            Progress::More => assert!(read(&mut socket, &mut client_in).await.unwrap() > 0),
        }
    };
    assert_eq!(session.alpn(), Some(&b"h2"[..]));
    let state = State {
        id: 0,
        session,
        client_in,
        plain: Vec::new(),
    };
    (ClientStream::new(socket, state), thread)
}

/// A certificate of a.example, and what a client trusts for it.
pub fn certificate() -> (Acceptor, RootCertStore) {
    let made = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.pem");
    let text = made.cert.pem() + &made.signing_key.serialize_pem();
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let certificates = Certificates::load(&[file]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    (
        Acceptor::new(certificates, &[b"h2"], TicketKeys::default(), b"a").unwrap(),
        roots,
    )
}

fn text(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * at / 7) as u8).collect()
}

#[tokio::test]
async fn data_goes_both_ways_and_ends_in_order() {
    const LENGTHS: [usize; 5] = [1, 9, LONGEST_PLAIN, 3 * LONGEST_PLAIN + 1, 1 << 20];
    let (mut stream, client) = connect(|mut client| {
        for length in LENGTHS {
            client.write_all(&text(length)).unwrap();
            let mut back = vec![0; length];
            client.read_exact(&mut back).unwrap();
            assert!(back == text(length), "{length}");
        }
        // Only close_notify makes this an end without an error.
        client.read_to_end(&mut Vec::new()).unwrap()
    })
    .await;
    for length in LENGTHS {
        let mut data = vec![0; length];
        stream.read_exact(&mut data).await.unwrap();
        stream.write_all(&data).await.unwrap();
        stream.flush().await.unwrap();
    }
    stream.shutdown().await.unwrap();
    assert_eq!(client.join().unwrap(), 0);
}

#[tokio::test]
async fn what_came_behind_the_handshake_is_read() {
    let (mut stream, client) = connect(|mut client| {
        client.write_all(b"early").unwrap();
        client.conn.send_close_notify();
        client.flush().unwrap();
        client.read_to_end(&mut Vec::new()).unwrap()
    })
    .await;
    let mut all = Vec::new();
    stream.read_to_end(&mut all).await.unwrap();
    assert_eq!(all, b"early");
    stream.shutdown().await.unwrap();
    assert_eq!(client.join().unwrap(), 0);
}

#[tokio::test]
async fn a_client_that_reads_nothing_bounds_what_is_written() {
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let (mut stream, client) = connect(move |mut client| {
        client.conn.complete_io(&mut client.sock).unwrap();
        wait.recv().unwrap();
        let mut all = Vec::new();
        client.read_to_end(&mut all).unwrap();
        all
    })
    .await;
    let mut written = Vec::new();
    let data = text(10_000);
    // The socket's buffers take some megabytes.
    while let Ok(count) = tokio::time::timeout(Duration::from_secs(1), stream.write(&data)).await {
        written.extend_from_slice(&data[..count.unwrap()]);
        assert!(written.len() < 64 << 20);
        assert!(stream.client_out.rest().len() < ROOM + 2 * LONGEST_PLAIN);
    }
    go_on.send(()).unwrap();
    stream.shutdown().await.unwrap();
    assert!(client.join().unwrap() == written);
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_let_go() {
    let (ended, end) = std::sync::mpsc::channel::<()>();
    let (mut stream, client) = connect(move |mut client| {
        client.conn.complete_io(&mut client.sock).unwrap();
        let _ = end.recv();
        client.read_to_end(&mut Vec::new())
    })
    .await;
    // From now on, time passes whenever nothing else can be done.
    tokio::time::pause();
    let data = text(1 << 20);
    let error = loop {
        match stream.write_all(&data).await {
            Ok(()) => (),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    drop(stream);
    drop(ended);
    assert!(client.join().unwrap().is_err());
}

#[tokio::test]
async fn a_record_that_is_not_the_clients_ends_the_session_with_an_alert() {
    let (mut stream, client) = connect(|mut client| {
        client.write_all(b"a").unwrap();
        client.flush().unwrap();
        // A record of data with a MAC that nobody has made.
        let mut forged = vec![23, 3, 3, 0, 32];
        forged.extend([7; 32]);
        client.sock.write_all(&forged).unwrap();
        client.read_to_end(&mut Vec::new()).unwrap_err()
    })
    .await;
    let mut data = Vec::new();
    assert!(stream.read_to_end(&mut data).await.is_err());
    assert_eq!(data, b"a");
    drop(stream);
    let error = client.join().unwrap().to_string();
    assert!(error.contains("BadRecordMac"), "{error}");
}

#[tokio::test]
async fn a_stream_that_is_dropped_looks_cut_off() {
    let (mut stream, client) =
        connect(|mut client| client.read_to_end(&mut Vec::new()).unwrap_err()).await;
    stream.write_all(b"half").await.unwrap();
    stream.flush().await.unwrap();
    drop(stream);
    let error = client.join().unwrap();
    assert!(
        matches!(
            error.kind(),
            io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof
        ),
        "{error}"
    );
}
