//! The kernel's records, as a client reads them. These tests need a kernel with the module `tls`, and skip what it lacks.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use baton_tls::{Received, Version};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use super::*;
use crate::pass::Pipe;
use crate::terminate::socket::{read, write_all};

/// The beginning of a record in TLS 1.2 whose nonce is sent along.
const HEADER: usize = 5;

async fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap());
    let (one, other) = tokio::join!(one, listener.accept());
    (one.unwrap(), other.unwrap().0)
}

/// A session that receives and sends with these keys, each of a repeated byte, from the records of these numbers on.
fn session(suite: Suite, directions: [(u8, u64); 2]) -> Session {
    let is_tls13 = suite.version() == Version::Tls13;
    let length = match (suite.cipher_kind(), is_tls13) {
        (baton_tls::Cipher::Aes256Gcm, true) => 48,
        (_, true) => 32,
        (baton_tls::Cipher::Aes128Gcm, false) => 16 + 12,
        (_, false) => 32 + 12,
    };
    let mut bytes = vec![1];
    bytes.extend(suite.number().to_be_bytes());
    bytes.extend([0; 4]);
    for (key, sequence) in directions {
        bytes.extend(sequence.to_be_bytes());
        bytes.resize(bytes.len() + length, key);
    }
    bytes.extend([1, 0, 0, 0, 0, 0]);
    Session::import(&bytes).unwrap()
}

/// A client that reads what comes at its socket.
struct Client {
    session: Session,
    socket: TcpStream,
    records: Vec<u8>,
    plain: Vec<u8>,
    explicit_nonces: HashSet<[u8; 8]>,
}

impl Client {
    /// Waits until `is_there` is true of the data that has come, or the server has sent close_notify.
    async fn read(&mut self, is_there: impl Fn(&[u8]) -> bool) -> Received {
        loop {
            let before = self.records.clone();
            let mut output = Vec::new();
            let received = self
                .session
                .receive(&mut self.records, &mut self.plain, &mut output);
            self.note_nonces(&before[..before.len() - self.records.len()]);
            match received.unwrap() {
                Received::Open if !is_there(&self.plain) => (),
                received => return received,
            }
            assert_ne!(read(&mut self.socket, &mut self.records).await.unwrap(), 0);
        }
    }

    fn note_nonces(&mut self, mut records: &[u8]) {
        let suite = self.session.suite();
        let is_explicit = suite.version() == Version::Tls12
            && suite.cipher_kind() != baton_tls::Cipher::Chacha20Poly1305;
        while let [_, _, _, high, low, ..] = *records {
            let (record, rest) =
                records.split_at(HEADER + usize::from(u16::from_be_bytes([high, low])));
            if is_explicit {
                let nonce = record[HEADER..HEADER + 8].try_into().unwrap();
                assert!(self.explicit_nonces.insert(nonce), "a nonce came twice");
            }
            records = rest;
        }
    }
}

/// A server's socket and session, and its client.
async fn pair(suite: Suite, sequence: u64) -> (TcpStream, Session, Client) {
    let (socket, peer) = sockets().await;
    let client = Client {
        session: session(suite, [(2, sequence), (1, 0)]),
        socket: peer,
        records: Vec::new(),
        plain: Vec::new(),
        explicit_nonces: HashSet::new(),
    };
    (socket, session(suite, [(1, 0), (2, sequence)]), client)
}

/// The session, and its socket, at another data server.
async fn moved(session: Session, client: &mut Client) -> (TcpStream, Session) {
    let (socket, peer) = sockets().await;
    client.socket = peer;
    (socket, Session::import(&session.export()).unwrap())
}

async fn say(session: &mut Session, socket: &TcpStream, data: &[u8]) -> usize {
    let mut output = Vec::new();
    session.send(data, &mut output).unwrap();
    let length = output.len();
    write_all(socket, &mut output).await.unwrap();
    length
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 % 251) as u8).collect()
}

/// Has the kernel send for a session. `None`, with the reason on stderr: it cannot.
fn begin(socket: &TcpStream, session: &mut Session) -> Option<KernelTls> {
    let kernel = KernelTls::begin(socket, session);
    if kernel.is_none() {
        let why = match IS_MISSING.load(Relaxed) {
            true => "this kernel has no kTLS",
            false => "this kernel does not have the cipher",
        };
        eprintln!("{}: skipped: {why}", session.suite().name());
    }
    kernel
}

#[tokio::test]
async fn sessions_go_from_process_to_kernel_and_back_and_to_other_sockets() {
    for &suite in Suite::ALL {
        let (mut socket, mut session, mut client) = pair(suite, 1).await;
        let mut expected = Vec::new();
        // In the second round the session has moved, and its client reads at another socket.
        for round in 0..3_u8 {
            expected.extend([round; 100]);
            say(&mut session, &socket, &[round; 100]).await;
            let Some(mut kernel) = begin(&socket, &mut session) else {
                // The session goes on without the kernel, whatever became of the socket.
                say(&mut session, &socket, b"as before").await;
                client.read(|plain| plain.ends_with(b"as before")).await;
                break;
            };
            for length in [1, 100, (1 << 14) - 1, 1 << 14, (1 << 14) + 1, 100_000] {
                let data = pattern(length);
                let written = say(&mut session, &socket, &data).await;
                assert_eq!(written, length, "data is written as it is");
                kernel.wrote(written);
                expected.extend(&data);
                client.read(|plain| plain.len() >= expected.len()).await;
            }
            let next = kernel.finish(&socket).await.unwrap();
            assert!(next >= kernel.first + 6 + 6);
            session.reclaim_sending(next).unwrap();
            (socket, session) = moved(session, &mut client).await;
        }
        assert_eq!(&client.plain[..expected.len()], expected);
    }
}

#[tokio::test]
async fn the_last_word_is_an_alert_behind_all_data() {
    for &suite in Suite::ALL {
        let (socket, mut session, mut client) = pair(suite, 5).await;
        let Some(mut kernel) = begin(&socket, &mut session) else {
            continue;
        };
        kernel.wrote(say(&mut session, &socket, b"the last").await);
        session.close(&mut Vec::new());
        let alert = session.take_alert().unwrap();
        kernel.send_alert(&socket, alert).await.unwrap();
        kernel.finish(&socket).await.unwrap();
        assert_eq!(client.read(|_| false).await, Received::Closed);
        assert_eq!(client.plain, b"the last");
    }
}

/// What the client does not take waits in TCP's buffer, and then in the kernel's records.
#[tokio::test]
async fn all_is_finished_only_when_tcp_has_it() {
    let suite = Suite::Aes128GcmSha256;
    let (socket, mut session, mut client) = pair(suite, 0).await;
    let Some(mut kernel) = begin(&socket, &mut session) else {
        return;
    };
    SockRef::from(&socket).set_send_buffer_size(1).unwrap();
    let piece = pattern(1 << 20);
    let mut all = 0;
    while let Ok(written) = socket.try_write(&piece) {
        kernel.wrote(written);
        all += written;
    }
    assert!(all > 0);
    let finish = kernel.finish(&socket);
    let (next, _) = tokio::join!(finish, client.read(|plain| plain.len() == all));
    session.reclaim_sending(next.unwrap()).unwrap();
    let (socket, mut session) = moved(session, &mut client).await;
    say(&mut session, &socket, b"behind it").await;
    client.read(|plain| plain.ends_with(b"behind it")).await;
}

#[tokio::test]
async fn a_servers_bytes_pass_within_the_kernel() {
    for &suite in Suite::ALL {
        let (socket, mut session, mut client) = pair(suite, 9).await;
        let Some(mut kernel) = begin(&socket, &mut session) else {
            continue;
        };
        let (mut server, from) = sockets().await;
        let data = pattern(1_000_003);
        let passing = async {
            let pipe = Pipe::new(1 << 16).unwrap();
            let mut left = data.len();
            while left > 0 {
                let mut filled = pipe.fill(&from, left as u64).await.unwrap();
                left -= filled;
                while filled > 0 {
                    let sent = pipe.send(&socket, filled).await.unwrap();
                    kernel.wrote(sent);
                    filled -= sent;
                }
            }
            kernel.finish(&socket).await.unwrap()
        };
        let (_, next, _) = tokio::join!(
            server.write_all(&data),
            passing,
            client.read(|plain| plain.len() == data.len()),
        );
        assert!(client.plain == data);
        session.reclaim_sending(next).unwrap();
        let (socket, mut session) = moved(session, &mut client).await;
        say(&mut session, &socket, b"behind it").await;
        client.read(|plain| plain.ends_with(b"behind it")).await;
    }
}

#[test]
fn a_control_message_names_the_type_of_its_record() {
    let control = record_type(ALERT);
    // SAFETY: this function only computes.
    let (length, room) = unsafe { (libc::CMSG_LEN(1), libc::CMSG_SPACE(1)) };
    assert_eq!(control.len(), room as usize);
    let (header, rest) = control.split_first_chunk().unwrap();
    assert_eq!(usize::from_ne_bytes(*header), length as usize);
    assert_eq!(rest[..4], 282_i32.to_ne_bytes());
    assert_eq!(rest[4..8], 1_i32.to_ne_bytes());
    assert_eq!(rest[8], 21);
}
