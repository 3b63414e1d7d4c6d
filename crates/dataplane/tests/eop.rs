//! Both ends of real connections say in the handshake that they speak EOP. Needs root and cgroup v2.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd as _};
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use baton_dataplane::{EopPins, control_groups, mounts};
use nix::errno::Errno;
use nix::libc;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{
    setsockopt,
    sockopt::{TcpFastOpenConnect, TcpUlp},
};
use socket2::{Domain, Socket, Type};

use eop::{Listener, Options, Peer, Resend, ServerOptions, Session, Speak, connect};

const ANY: &str = "127.0.0.1:0";

/// A control group with the programs, in which this process is until the group is dropped.
struct Group {
    path: PathBuf,
    above: PathBuf,
    pins: EopPins,
}

impl Group {
    fn new() -> Self {
        let root = mounts();
        let root = PathBuf::from(control_groups(&root).expect("no control groups of version 2"));
        let name = format!("baton-test-eop-{}", std::process::id());
        let path = root.join(&name);
        fs::create_dir(&path).unwrap();
        // The line of the unified hierarchy: 0::/where/it/is
        let own = fs::read_to_string("/proc/self/cgroup").unwrap();
        let own = own
            .lines()
            .find_map(|line| line.strip_prefix("0::/"))
            .unwrap();
        let group = Self {
            above: root.join(own),
            path,
            pins: EopPins::at(format!("/sys/fs/bpf/{name}").into()),
        };
        fs::write(group.path.join("cgroup.procs"), "0").unwrap();
        group.pins.attach(&group.path).unwrap();
        group
    }

    fn counters(&self) -> HashMap<String, u64> {
        let counters = self.pins.counters().unwrap().unwrap();
        counters.into_iter().collect()
    }

    fn counter(&self, name: &str) -> u64 {
        self.counters()[name]
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.pins.detach().unwrap();
        fs::write(self.above.join("cgroup.procs"), "0").unwrap();
        fs::remove_dir(&self.path).unwrap();
    }
}

fn client() -> Options {
    Options {
        speak: Speak::Either,
        resend: Resend::Session { limit: 1 << 20 },
        // So long that a test that waited for it would be seen to fail by the server's own time.
        patience: Duration::from_secs(60),
        connect_timeout: Duration::from_secs(60),
        ..Options::default()
    }
}

fn listen() -> (Listener, SocketAddr) {
    let options = ServerOptions {
        speak: Speak::Either,
        ..ServerOptions::default()
    };
    let listener = Listener::bind(ANY.parse().unwrap(), options).unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

fn echo(session: &mut Session) {
    while let Some(request) = session.recv().unwrap() {
        let answer = request.to_vec();
        session.send(&answer).unwrap();
    }
}

/// All cases are in one test, because the control group is that of the process.
#[test]
fn the_handshake_says_who_speaks_what() {
    if !nix::unistd::geteuid().is_root() || control_groups(&mounts()).is_none() {
        eprintln!("skipped: needs root, and control groups of version 2");
        return;
    }
    let group = Group::new();

    // EOP to EOP: both ends know before the first byte.
    let (listener, at) = listen();
    let server = thread::spawn(move || {
        let mut session = listener.accept().unwrap();
        assert_eq!(session.peer(), Some(Peer::Eop), "known when accepted");
        echo(&mut session);
        // A plain client to an EOP server, on the same port.
        let mut session = listener.accept().unwrap();
        assert_eq!(session.peer(), None);
        echo(&mut session);
        assert_eq!(session.peer(), Some(Peer::Plain));
    });
    let mut socket = connect(at, client()).unwrap();
    assert_eq!(socket.peer(), Peer::Eop);
    socket.send(b"one").unwrap();
    assert_eq!(socket.recv().unwrap().unwrap(), b"one");
    drop(socket);
    assert_eq!(group.counter("eop_agreed_client"), 1);
    assert_eq!(group.counter("eop_agreed_server"), 1);
    let mut plain = TcpStream::connect(at).unwrap();
    plain.write_all(b"two").unwrap();
    let mut bytes = [0; 3];
    plain.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"two");
    drop(plain);
    server.join().unwrap();
    assert_eq!(group.counter("eop_plain_client"), 1);

    // An EOP client to a plain server: there is one connection, and nothing on it that is not the application's.
    let listener = TcpListener::bind(ANY).unwrap();
    let at = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut all = String::new();
        stream.read_to_string(&mut all).unwrap();
        all
    });
    let mut socket = connect(at, client()).unwrap();
    assert_eq!(socket.peer(), Peer::Plain);
    socket.send(b"three").unwrap();
    drop(socket);
    assert_eq!(server.join().unwrap(), "three");
    assert_eq!(group.counter("eop_plain_server"), 1);

    // A client that cannot announce EOP in its SYN sends HELLO to a server that can.
    let (listener, at) = listen();
    let server = thread::spawn(move || echo(&mut listener.accept().unwrap()));
    let mut raw = TcpStream::connect(at).unwrap();
    raw.write_all(&[1, 3, 13, 10, 0xef, b'E', b'O', b'P', 0, 0, 0, 0, 0, 0])
        .unwrap();
    raw.write_all(&[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, b'4'])
        .unwrap();
    let mut bytes = [0; 14 + 13];
    raw.read_exact(&mut bytes).unwrap();
    assert_eq!(bytes[..2], [1, 4]);
    assert_eq!(bytes[26], b'4');
    drop(raw);
    server.join().unwrap();

    // After a redirection the next server learns that the client speaks EOP from the HELLO that comes first.
    let ((first, at), (second, there)) = (listen(), listen());
    let servers = [
        thread::spawn(move || first.accept().unwrap().redirect(None, there).unwrap()),
        thread::spawn(move || echo(&mut second.accept().unwrap())),
    ];
    let mut socket = connect(at, client()).unwrap();
    socket.send(b"five").unwrap();
    assert_eq!(socket.recv().unwrap().unwrap(), b"five");
    drop(socket);
    for server in servers {
        server.join().unwrap();
    }

    // Sockets that announce nothing are left alone, and programs that are gone announce nothing.
    assert_eq!(group.counter("eop_announced"), 7);
    assert_eq!(group.counter("eop_syn"), 3);
    assert_eq!(group.counter("eop_syn_ack"), 2);
    assert_eq!(group.counter("eop_no_space"), 0);

    // The next cases have hosts of their own, where the option is lost in the handshake.
    on_own_host(|| a_firewall_that_drops_the_option(&group));
    on_own_host(|| a_server_that_forgets_syns(&group));
    on_own_host(|| a_syn_without_space(&group));
}

/// After two SYNs without an answer the third SYN goes without the option, and the client asks by HELLO.
fn a_firewall_that_drops_the_option(group: &Group) {
    run(
        "nft",
        "add table inet wall; \
         add chain inet wall in { type filter hook input priority 0; }; \
         add rule inet wall in tcp flags & syn == syn tcp option 253 exists drop",
    );
    let before = group.counters();
    let (listener, at) = listen();
    thread::scope(|scope| {
        let server = scope.spawn(|| echo(&mut listener.accept().unwrap()));
        let mut socket = connect(at, client()).unwrap();
        assert_eq!(socket.peer(), Peer::Eop);
        socket.send(b"six").unwrap();
        assert_eq!(socket.recv().unwrap().unwrap(), b"six");
        drop(socket);
        server.join().unwrap();
    });
    let more = |name: &str| group.counter(name) - before[name];
    assert_eq!((more("eop_syn"), more("eop_syn_without")), (2, 1));
    assert_eq!((more("eop_unsaid"), more("eop_plain_server")), (1, 0));
    assert_eq!(more("eop_plain_client"), 1);
}

/// With SYN cookies the server does not answer the option. Two EOP ends are then plain to each other, and no data is
/// lost.
fn a_server_that_forgets_syns(group: &Group) {
    fs::write("/proc/sys/net/ipv4/tcp_syncookies", "2").unwrap();
    let before = group.counters();
    let (listener, at) = listen();
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            let mut session = listener.accept().unwrap();
            echo(&mut session);
            assert_eq!(session.peer(), Some(Peer::Plain));
        });
        let mut socket = connect(at, client()).unwrap();
        assert_eq!(socket.peer(), Peer::Plain);
        socket.send(b"seven").unwrap();
        assert_eq!(socket.recv().unwrap().unwrap(), b"seven");
        drop(socket);
        server.join().unwrap();
    });
    let more = |name: &str| group.counter(name) - before[name];
    assert_eq!((more("eop_syn"), more("eop_syn_ack")), (1, 0));
    assert_eq!(more("eop_syn_ack_cookie"), 1);
    assert_eq!((more("eop_plain_server"), more("eop_plain_client")), (1, 1));
}

/// The SYN of a client that signs its packets (RFC 2385) and asks for a cookie of TCP Fast Open has four bytes left, which
/// are too few for the option. A SYN-ACK without the option then does not say that the server is plain.
fn a_syn_without_space(group: &Group) {
    let before = group.counters();
    let eop = |socket: &Socket| setsockopt(socket, TcpUlp::default(), &b"eop");
    let listener = TcpListener::bind(ANY).unwrap();
    sign(&listener);
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    sign(&socket);
    setsockopt(&socket, TcpFastOpenConnect, &true).unwrap();
    eop(&socket).unwrap();
    let at = listener.local_addr().unwrap();
    socket.connect(&at.into()).unwrap();
    assert_eq!(eop(&socket), Err(Errno::ENOMSG));
    let more = |name: &str| group.counter(name) - before[name];
    assert_eq!((more("eop_syn"), more("eop_no_space")), (1, 1));
    assert_eq!((more("eop_unsaid"), more("eop_plain_server")), (1, 0));
}

/// Has the socket sign what it sends to this host, and take only what is signed from it.
fn sign(socket: &impl AsFd) {
    const KEY: &[u8] = b"secret";
    // `struct tcp_md5sig` of include/uapi/linux/tcp.h: the peer's address, the length of the key, and the key.
    let mut signature = [0u8; 216];
    signature[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    signature[4..8].copy_from_slice(&[127, 0, 0, 1]);
    signature[130..132].copy_from_slice(&(KEY.len() as u16).to_ne_bytes());
    signature[136..136 + KEY.len()].copy_from_slice(KEY);
    // SAFETY: `signature` is as long as said, and lives through the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_MD5SIG,
            signature.as_ptr().cast(),
            signature.len() as u32,
        )
    };
    Errno::result(result).expect("a kernel with TCP_MD5SIG");
}

fn on_own_host(test: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let here = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            run("ip", "link set lo up");
            test();
        });
        here.join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

fn run(program: &str, arguments: &str) {
    let status = Command::new(program).args(arguments.split(' ')).status();
    assert!(status.unwrap().success(), "{program} {arguments}");
}
