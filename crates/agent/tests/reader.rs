//! Tests of the agent that reads requests, on loopback connections. A fake stands in for the data server's program: it
//! keeps the frames that come in, and has a client reset its connection when these bring its whole request.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::HashSet;
use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use baton_abi::{DOOR_BROKEN, DOOR_NOBODY, Door, HaveRead, Kept, NO_POOL, READ_SWITCHES, TcbKey};
use baton_agent::position;
use baton_agent::reader::{Asked, Counters, Lead, Program, Protocol, Reader, Route, Served, Store};
use baton_net::client_frame::Segment;
use socket2::SockRef;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 7];
const POOL: u16 = 5;
const ROUTE: u16 = 70;

/// What the fake program has seen, and how it is to behave.
#[derive(Default)]
struct Seen {
    begin: Option<u32>,
    read: HaveRead,
    frames: Vec<Vec<u8>>,
    /// Once this many bytes have come in, the program lets the connection go. 0: it never does so.
    goes_after: usize,
    client: Option<TcpStream>,
    /// The next socket lacks data this many more times that it is asked about.
    missing: u32,
    /// What is known of the next socket.
    kept: Kept,
    /// Whether the connection's next socket is nowhere.
    is_gone: bool,
    /// The frame whose client was probed last.
    probed: Option<Vec<u8>>,
    /// The kernel refuses this many frames, the next ones.
    refused: u32,
    /// Flags of the door once a request was read.
    flags: u16,
    /// Flags of the door before that.
    flags_at_first: u16,
    /// How long a head may take. `None`: a minute.
    head_timeout: Option<Duration>,
    /// What clients speak. `None`: HTTP.
    protocol: Option<Protocol>,
    refuses_unknown_names: bool,
}

#[derive(Default)]
struct Fake(Mutex<Seen>);

impl Program for Fake {
    fn served(&self, _: SocketAddrV4) -> Option<Served> {
        let seen = self.0.lock().unwrap();
        Some(Served {
            id: 0,
            protocol: seen.protocol.unwrap_or(Protocol::Http),
            head_timeout: seen.head_timeout.unwrap_or(Duration::from_secs(60)),
            refuses_unknown_names: seen.refuses_unknown_names,
        })
    }

    fn door(&self, socket: BorrowedFd<'_>, _: &TcbKey) -> io::Result<Option<Door>> {
        let mut seen = self.0.lock().unwrap();
        let begin = seen.begin.get_or_insert_with(|| begin_of(socket));
        Ok(Some(Door {
            request: *begin,
            be_window: 501u16.to_be(),
            flags: if seen.read.end == 0 {
                seen.flags_at_first
            } else {
                seen.flags
            },
            ..Door::default()
        }))
    }

    fn lead(&self, _: u16, asked: &Asked) -> Option<Lead> {
        let route = Route {
            number: ROUTE,
            pool: POOL,
        };
        let is_routed = match asked {
            Asked::Http(request) => request.target().starts_with(b"/pool"),
            Asked::Tls(hello) => hello.name() == "pool.example",
        };
        Some(Lead {
            route: is_routed.then_some(route),
            path: Some(0x1_0000_0002),
        })
    }

    fn tell(&self, _: BorrowedFd<'_>, read: &HaveRead) -> io::Result<()> {
        self.0.lock().unwrap().read = *read;
        Ok(())
    }

    fn keep(&self, _: &TcbKey, begin: u32) -> io::Result<()> {
        let mut seen = self.0.lock().unwrap();
        assert_eq!(Some(begin), seen.begin);
        seen.kept.received = begin;
        Ok(())
    }

    fn kept(&self, _: &TcbKey) -> io::Result<Option<Kept>> {
        let mut seen = self.0.lock().unwrap();
        seen.missing = seen.missing.saturating_sub(1);
        if seen.missing == 0 {
            seen.kept.received = seen.read.end;
        }
        seen.kept.gone += u32::from(seen.is_gone);
        Ok(Some(seen.kept))
    }

    fn mac(&self) -> [u8; 6] {
        MAC
    }

    fn send(&self, frame: &[u8]) -> io::Result<()> {
        let mut seen = self.0.lock().unwrap();
        if seen.refused > 0 {
            seen.refused -= 1;
            return Err(io::ErrorKind::StorageFull.into());
        }
        seen.frames.push(frame.to_vec());
        let come: usize = seen.frames.iter().map(|frame| payload(frame).len()).sum();
        if seen.goes_after > 0 && come >= seen.goes_after {
            // Dropping the client's socket resets the connection.
            seen.client = None;
        }
        Ok(())
    }

    fn probe(&self, frame: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().probed = Some(frame.to_vec());
        Ok(())
    }
}

/// Returns the sequence number that the kernel expects next of the client, less what waits to be read.
fn begin_of(socket: BorrowedFd<'_>) -> u32 {
    let next = position::of(&socket).unwrap().receive;
    let mut bytes = [MaybeUninit::uninit(); 1 << 12];
    let waits = SockRef::from(&socket).peek(&mut bytes).unwrap_or(0);
    next.wrapping_sub(waits as u32)
}

fn payload(frame: &[u8]) -> &[u8] {
    Segment::read(frame).unwrap().payload
}

/// A reader, its program, and a client's connection to it.
struct Bed {
    program: Arc<Fake>,
    counters: Arc<Counters>,
    client: TcpStream,
    /// The directory of what is kept.
    kept: Arc<TempDir>,
    /// The task that runs the reader. When this is dropped, the reader is like one that was killed.
    process: JoinSet<()>,
}

impl Bed {
    async fn new() -> Self {
        Self::of(Seen::default()).await
    }

    async fn of(seen: Seen) -> Self {
        let program = Arc::new(Fake(Mutex::new(seen)));
        let (services, watch) = watch::channel(HashSet::new());
        let kept = Arc::new(tempfile::tempdir().unwrap());
        let store = Store::open(kept.path().to_owned()).unwrap();
        let reader = Reader::bind(program.clone(), watch, store).unwrap();
        let at = SocketAddrV4::new(Ipv4Addr::LOCALHOST, reader.port());
        services.send_replace(HashSet::from([at]));
        let counters = reader.counters();
        let mut process = JoinSet::new();
        let dir = Arc::clone(&kept);
        process.spawn(async move {
            reader.run().await;
            drop((services, dir));
        });
        let client = TcpStream::connect(at).await.unwrap();
        client.set_nodelay(true).unwrap();
        Self {
            program,
            counters,
            client,
            kept,
            process,
        }
    }

    async fn say(&mut self, text: &[u8]) {
        self.client.write_all(text).await.unwrap();
    }

    /// Ends the client's direction, once the program was asked for the door, so the reader has the connection.
    async fn end(&mut self) {
        until(|| self.program.0.lock().unwrap().begin.is_some()).await;
        self.client.shutdown().await.unwrap();
    }

    /// Lets the connection go when `bytes` bytes have come in by frames. The next socket then lacks data `missing`
    /// times.
    fn goes_after(mut self, bytes: usize, missing: u32) -> (Arc<Fake>, Arc<Counters>) {
        let mut seen = self.program.0.lock().unwrap();
        (seen.goes_after, seen.missing) = (bytes, missing);
        SockRef::from(&self.client)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
        seen.client = Some(self.client);
        drop(seen);
        self.process.detach_all();
        (self.program, self.counters)
    }

    /// Returns all that comes until the connection ends in order.
    async fn answer(self) -> String {
        String::from_utf8(self.answered().await).unwrap()
    }

    async fn answered(mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.client.read_to_end(&mut bytes).await.unwrap();
        drop(self.client);
        until(|| self.counters.answered.load(Relaxed) == 1).await;
        bytes
    }
}

/// Kills the reader's process when a connection that has sent `text` has gone on, and its next socket lacks data.
/// Returns the program that the next process finds, as `becomes` has changed it, and the directory of what is kept.
async fn killed_over(text: &[u8], becomes: impl FnOnce(&mut Seen)) -> (Arc<Fake>, Arc<TempDir>) {
    let mut bed = Bed::new().await;
    let process = std::mem::take(&mut bed.process);
    let kept = Arc::clone(&bed.kept);
    bed.say(text).await;
    let (program, _) = bed.goes_after(text.len(), u32::MAX);
    until(|| program.0.lock().unwrap().frames.len() > 2).await;
    drop(process);
    let next = Arc::new(Fake::default());
    {
        let (last, mut seen) = (program.0.lock().unwrap(), next.0.lock().unwrap());
        (seen.read, seen.kept) = (last.read, last.kept);
        becomes(&mut seen);
    }
    let store = Store::open(kept.path().to_owned()).unwrap();
    let (services, watch) = watch::channel(HashSet::new());
    let reader = Reader::bind(next.clone(), watch, store).unwrap();
    tokio::spawn(async move {
        reader.run().await;
        drop(services);
    });
    (next, kept)
}

async fn until(mut holds: impl FnMut() -> bool) {
    let held = async {
        while !holds() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(20), held).await.unwrap();
}

fn run(name: &str, test: impl Future<Output = ()>) {
    if !nix::unistd::geteuid().is_root() {
        return eprintln!("{name}: skipped: sequence numbers are read with CAP_NET_ADMIN");
    }
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(test);
}

#[test]
fn a_request_is_given_to_the_program_as_it_came() {
    run("a_request_is_given_to_the_program_as_it_came", async {
        let mut bed = Bed::new().await;
        let head = format!(
            "POST /pool/ HTTP/1.1\r\nX: {}\r\nContent-Length: 9\r\n\r\n",
            "x".repeat(3000)
        );
        let text = format!("{head}body GET / HTTP/1.1\r\nUpgrade: a, H2C\r\n\r\nGET");
        let (begins, rest) = text.as_bytes().split_at(30);
        for byte in begins {
            bed.say(&[*byte]).await;
            sleep(Duration::from_millis(1)).await;
        }
        assert!(bed.program.0.lock().unwrap().frames.is_empty());
        bed.say(rest).await;
        let (program, counters) = bed.goes_after(text.len(), 3);
        until(|| counters.given.load(Relaxed) == 1).await;
        let seen = program.0.lock().unwrap();
        let begin = seen.begin.unwrap();
        assert_eq!(seen.read.end, begin.wrapping_add(text.len() as u32));
        assert_eq!((seen.read.head, seen.read.body), (head.len() as u32, 9));
        assert_eq!((seen.read.pool, seen.read.route), (POOL, ROUTE));
        assert_eq!(seen.read.path, [2, 1]);
        assert_eq!(seen.read.flags, 0);
        // Each request begins a frame. The last frame is sent once more, and then all frames.
        let mut at = begin;
        let mut come: Vec<u8> = Vec::new();
        for frame in &seen.frames {
            let segment = Segment::read(frame).unwrap();
            assert_eq!(frame[..6], MAC);
            if segment.seq == at {
                come.extend(segment.payload);
                at = at.wrapping_add(segment.payload.len() as u32);
            }
        }
        assert_eq!(come, text.as_bytes());
        let second = begin.wrapping_add(head.len() as u32 + 9);
        for start in [begin, second] {
            let begins = |frame: &Vec<u8>| Segment::read(frame).unwrap().seq == start;
            assert!(seen.frames.iter().filter(|frame| begins(frame)).count() >= 2);
        }
    });
}

#[test]
fn a_client_that_sends_no_more_is_given_with_its_end() {
    run("a_client_that_sends_no_more_is_given_with_its_end", async {
        let mut bed = Bed::new().await;
        let text = b"GET /%61 HTTP/1.1\r\nUpgrade: h2c\r\n\r\n";
        bed.say(&text[..9]).await;
        until(|| bed.program.0.lock().unwrap().begin.is_some()).await;
        bed.say(&text[9..]).await;
        bed.end().await;
        let program = Arc::clone(&bed.program);
        until(|| !program.0.lock().unwrap().frames.is_empty()).await;
        let seen = program.0.lock().unwrap();
        let frame = &seen.frames[0];
        const FIN: u8 = 1;
        assert_eq!(frame[47] & FIN, FIN);
        assert_eq!(payload(frame), b"GET /%61 HTTP/1.1\r\nUpgrade: ---\r\n\r\n");
        assert_eq!(
            seen.read.end,
            seen.begin.unwrap().wrapping_add(text.len() as u32 + 1)
        );
        assert_eq!(
            (seen.read.pool, seen.read.flags),
            (NO_POOL as u16, READ_SWITCHES as u16)
        );
    });
}

/// The process is killed when the connection has gone on, and its next socket lacks data.
#[test]
fn what_is_kept_the_next_process_sends_in() {
    run("what_is_kept_the_next_process_sends_in", async {
        let text = b"GET /%61 HTTP/1.1\r\n\r\n";
        let (next, kept) = killed_over(text, |next| next.missing = 3).await;
        let is_empty = || kept.path().read_dir().unwrap().next().is_none();
        until(is_empty).await;
        let seen = next.0.lock().unwrap();
        assert!(seen.frames.len() > 1);
        assert!(seen.frames.iter().all(|frame| payload(frame) == text));
    });
}

/// What the kernel refuses to send is sent again, before the connection has gone on and after that.
#[test]
fn a_frame_that_is_refused_is_lost_and_sent_again() {
    run("a_frame_that_is_refused_is_lost_and_sent_again", async {
        let mut bed = Bed::new().await;
        let text = b"GET /%61 HTTP/1.1\r\n\r\n";
        bed.program.0.lock().unwrap().refused = 2;
        bed.say(text).await;
        let (program, counters) = bed.goes_after(text.len(), 4);
        until(|| program.0.lock().unwrap().client.is_none()).await;
        program.0.lock().unwrap().refused = 2;
        until(|| counters.given.load(Relaxed) == 1).await;
        assert_eq!(counters.failed.load(Relaxed), 0);
    });
}

/// The connection was answered and has ended, so the client is not probed.
#[test]
fn who_is_nowhere_has_ended() {
    run("who_is_nowhere_has_ended", async {
        let mut bed = Bed::new().await;
        let text = b"GET /%61 HTTP/1.1\r\n\r\n";
        bed.say(text).await;
        let kept = Arc::clone(&bed.kept);
        bed.program.0.lock().unwrap().is_gone = true;
        let (program, counters) = bed.goes_after(text.len(), u32::MAX);
        until(|| counters.given.load(Relaxed) == 1).await;
        assert!(program.0.lock().unwrap().probed.is_none());
        assert!(kept.path().read_dir().unwrap().next().is_none());
    });
}

/// The client's connection was lost with the process that was killed. Without a probe the client would wait forever.
#[test]
fn who_may_have_lost_its_connection_is_asked() {
    run("who_may_have_lost_its_connection_is_asked", async {
        let text = b"GET /%61 HTTP/1.1\r\n\r\n";
        let is_lost = |next: &mut Seen| (next.missing, next.is_gone) = (u32::MAX, true);
        let (next, kept) = killed_over(text, is_lost).await;
        until(|| next.0.lock().unwrap().probed.is_some()).await;
        let probed = next.0.lock().unwrap().probed.take().unwrap();
        assert_eq!(payload(&probed), text);
        assert!(kept.path().read_dir().unwrap().next().is_none());
    });
}

#[test]
fn what_no_server_can_answer_is_answered() {
    run("what_no_server_can_answer_is_answered", async {
        for (text, status) in [
            ("GET / HTTP/1.1\r\n folded\r\n\r\n", "400 Bad Request"),
            (
                "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
                "400 Bad Request",
            ),
        ] {
            let mut bed = Bed::new().await;
            bed.say(text.as_bytes()).await;
            let answer = bed.answer().await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}\r\n")),
                "{answer}"
            );
            assert!(answer.ends_with(&format!("\r\n\r\n{status}\n")), "{answer}");
        }
    });
}

/// A client that has sent only line ends has asked for nothing, so it gets no answer.
#[test]
fn who_takes_too_long_for_a_head_is_told() {
    run("who_takes_too_long_for_a_head_is_told", async {
        for (text, answer) in [
            (&b"GET / HT"[..], "HTTP/1.1 408 Request Timeout\r\n"),
            (b"\r\n", ""),
            // The connection has come here idle.
            (b"", ""),
        ] {
            let mut bed = Bed::of(Seen {
                head_timeout: Some(Duration::from_millis(50)),
                ..Seen::default()
            })
            .await;
            bed.say(text).await;
            let answered = bed.answer().await;
            assert!(answered.starts_with(answer), "{answered}");
            assert_eq!(answered.is_empty(), answer.is_empty());
        }
    });
}

/// The data is the rest of a request that was judged before, whatever it looks like.
#[test]
fn the_rest_of_a_body_that_is_none_is_answered() {
    run("the_rest_of_a_body_that_is_none_is_answered", async {
        let mut bed = Bed::of(Seen {
            flags_at_first: DOOR_BROKEN as u16,
            ..Seen::default()
        })
        .await;
        bed.say(b"GET /pool HTTP/1.1\r\n\r\n").await;
        let program = Arc::clone(&bed.program);
        assert!(bed.answer().await.starts_with("HTTP/1.1 400 "));
        assert!(program.0.lock().unwrap().frames.is_empty());
    });
}

/// Nobody needs to know the rest of a request that is nobody's.
#[test]
fn what_is_known_to_be_nobody_s_is_answered_at_once() {
    run("what_is_known_to_be_nobody_s_is_answered_at_once", async {
        let mut bed = Bed::of(Seen {
            flags_at_first: DOOR_NOBODY as u16,
            ..Seen::default()
        })
        .await;
        bed.say(b"GET /po").await;
        assert!(bed.answer().await.starts_with("HTTP/1.1 503 "));
    });
}

#[test]
fn what_is_nobody_s_is_answered() {
    run("what_is_nobody_s_is_answered", async {
        let mut bed = Bed::new().await;
        bed.program.0.lock().unwrap().flags = DOOR_NOBODY as u16;
        bed.say(b"GET / HTTP/1.1\r\n\r\n").await;
        assert!(bed.answer().await.starts_with("HTTP/1.1 503 "));
    });
}

#[test]
fn what_the_program_does_not_let_go_on_is_answered() {
    run("what_the_program_does_not_let_go_on_is_answered", async {
        let mut bed = Bed::new().await;
        bed.say(b"GET / HTTP/1.1\r\n\r\n").await;
        assert!(bed.answer().await.starts_with("HTTP/1.1 503 "));
    });
}

#[test]
fn a_client_that_goes_before_its_head_is_whole_has_failed() {
    run(
        "a_client_that_goes_before_its_head_is_whole_has_failed",
        async {
            let mut bed = Bed::new().await;
            bed.say(b"GET / HT").await;
            bed.end().await;
            until(|| bed.counters.failed.load(Relaxed) == 1).await;
            assert!(bed.program.0.lock().unwrap().frames.is_empty());
            // The connection ends in order, as a server would end it.
            let mut answer = String::new();
            assert_eq!(bed.client.read_to_string(&mut answer).await.unwrap(), 0);
        },
    );
}

/// While the agent has a connection at the server's port, and after that in TIME_WAIT, the server can be restarted.
#[test]
fn a_server_can_bind_to_the_port_of_a_connection_that_was_looked_at() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = server.local_addr().unwrap();
    let _client = std::net::TcpStream::connect(at).unwrap();
    let (connection, _) = server.accept().unwrap();
    position::of(&connection).unwrap();
    drop(server);
    // A listener of the standard library shares its port with connections that allow it (SO_REUSEADDR).
    std::net::TcpListener::bind(at).unwrap();
}

/// What openssl says first to a server called `pool.example`, in one record.
const HELLO: &[u8] = include_bytes!("client_hello_for_pool.example");

fn tls() -> Seen {
    Seen {
        protocol: Some(Protocol::Tls),
        ..Seen::default()
    }
}

/// Begins a TLS connection with these bytes, and asserts that it is given to the program for the service's own pool.
async fn goes_to_the_service_s_own_pool(first: &[u8]) {
    let mut bed = Bed::of(tls()).await;
    bed.say(first).await;
    let (program, counters) = bed.goes_after(first.len(), 0);
    until(|| counters.given.load(Relaxed) == 1).await;
    assert_eq!(u32::from(program.0.lock().unwrap().read.pool), NO_POOL);
}

/// All that has come counts as the head of a request whose body never ends.
#[test]
fn a_tls_connection_is_given_to_the_program_as_it_came() {
    run(
        "a_tls_connection_is_given_to_the_program_as_it_came",
        async {
            let mut bed = Bed::of(tls()).await;
            let (begins, rest) = HELLO.split_at(HELLO.len() - 1);
            bed.say(begins).await;
            sleep(Duration::from_millis(50)).await;
            assert!(bed.program.0.lock().unwrap().frames.is_empty());
            bed.say(rest).await;
            let (program, counters) = bed.goes_after(HELLO.len(), 0);
            until(|| counters.given.load(Relaxed) == 1).await;
            let seen = program.0.lock().unwrap();
            assert_eq!((seen.read.head, seen.read.body), (HELLO.len() as u32, 0));
            assert_eq!(seen.read.large, [0, 1 << 30]);
            assert_eq!((seen.read.pool, seen.read.route), (POOL, ROUTE));
            assert_eq!(payload(&seen.frames[0]), HELLO);
        },
    );
}

#[test]
fn a_name_without_a_route_is_refused_if_the_service_says_so() {
    run(
        "a_name_without_a_route_is_refused_if_the_service_says_so",
        async {
            let at = HELLO.windows(4).position(|part| part == b"pool").unwrap();
            let mut other = HELLO.to_vec();
            other[at..at + 4].copy_from_slice(b"moor");
            let mut bed = Bed::of(Seen {
                refuses_unknown_names: true,
                ..tls()
            })
            .await;
            bed.say(&other).await;
            assert_eq!(bed.answered().await, [21, 3, 3, 0, 2, 2, 112]); // unrecognized_name

            goes_to_the_service_s_own_pool(&other).await;
        },
    );
}

/// The service's own servers answer what begins no TLS connection, or what names no server, as they do without baton.
#[test]
fn what_begins_no_tls_connection_names_no_server() {
    run("what_begins_no_tls_connection_names_no_server", async {
        for text in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            &[22, 3, 1, 0, 4, 2, 0, 0, 0],
        ] {
            goes_to_the_service_s_own_pool(text).await;
        }
    });
}

#[test]
fn a_tls_client_whose_server_is_nobody_is_told() {
    run("a_tls_client_whose_server_is_nobody_is_told", async {
        let mut bed = Bed::of(Seen {
            flags: DOOR_NOBODY as u16,
            ..tls()
        })
        .await;
        bed.say(HELLO).await;
        assert_eq!(bed.answered().await, [21, 3, 3, 0, 2, 2, 80]); // internal_error
    });
}

/// It has said too little to be told anything.
#[test]
fn a_tls_client_that_takes_too_long_is_left() {
    run("a_tls_client_that_takes_too_long_is_left", async {
        let mut bed = Bed::of(Seen {
            head_timeout: Some(Duration::from_millis(100)),
            ..tls()
        })
        .await;
        bed.say(&HELLO[..100]).await;
        assert!(bed.answered().await.is_empty());
    });
}
