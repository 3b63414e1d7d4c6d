//! A LAN whose server host relays, servers to relay to, and clients.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use baton_agent::relay::{Counters, Relay};
use baton_agent::{Routing, Services};
use baton_net::{Host, Netlink, Undo};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::sync::{oneshot, watch};

use crate::common::{self, Lan, Namespace, Thread};

pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);
pub const CLUSTER: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 100);
pub const WEB: SocketAddrV4 = SocketAddrV4::new(CLUSTER, 80);
pub const OTHER: SocketAddrV4 = SocketAddrV4::new(CLUSTER, 81);
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A LAN whose server relays ports 80 and 81 of the cluster address.
pub struct Bed {
    pub lan: Lan,
    pub relay_port: u16,
    pub counters: Arc<Counters>,
    thread: Option<Thread<()>>,
    _run_dir: tempfile::TempDir,
}

impl Bed {
    /// Makes a bed, or returns `None` if this test may not make namespaces.
    pub fn new() -> Option<Self> {
        if !common::may_run_here() {
            return None;
        }
        let lan = Lan::new();
        lan.server.ip("address add 10.88.0.100/32 dev lo");
        let run_dir = tempfile::tempdir().unwrap();
        let journal = run_dir.path().join("undo.json");
        let (ready, is_ready) = mpsc::channel();
        let daemon = async move |stopped: oneshot::Receiver<()>| {
            let routing = Routing::default();
            let undo = Undo::load(journal).unwrap();
            let mut host = Host::new(Netlink::open().unwrap(), undo);
            routing.prepare(&mut host).await.unwrap();
            let (_services, known) = watch::channel(Services::from([WEB, OTHER]));
            let relay = Relay::on(transparent(), &routing, known).unwrap();
            ready.send((relay.port(), relay.counters())).unwrap();
            tokio::select! {
                () = relay.run() => {}
                _ = stopped => {}
            }
            let errors = host.unwind().await;
            assert!(errors.is_empty(), "{errors:?}");
        };
        let thread = Thread::start(&lan.server, daemon);
        let (relay_port, counters) = is_ready.recv_timeout(PATIENCE).unwrap();
        lan.server.feed(
            "nft",
            &["-f"],
            &format!(
                "table ip t {{
                   counter resets {{ }}
                   chain in {{
                     type filter hook prerouting priority mangle;
                     iifname eth0 ip daddr {CLUSTER} tcp dport {{ 80, 81 }} \
                       tproxy to 127.0.0.1:{relay_port} accept
                   }}
                   chain out {{
                     type filter hook postrouting priority 0;
                     oifname eth0 tcp flags & rst == rst counter name resets
                   }}
                 }}\n"
            ),
        );
        Some(Self {
            lan,
            relay_port,
            counters,
            thread: Some(thread),
            _run_dir: run_dir,
        })
    }

    /// Connects from the client's namespace, from this port (0: any).
    pub fn connect(&self, port: u16, to: SocketAddrV4) -> io::Result<TcpStream> {
        self.lan.client.run(|| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            socket.set_reuse_address(true)?;
            socket.bind(&SocketAddr::V4(SocketAddrV4::new(CLIENT, port)).into())?;
            socket.connect_timeout(&SocketAddr::V4(to).into(), PATIENCE)?;
            let stream: TcpStream = socket.into();
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(stream)
        })
    }

    /// Connects like `connect`, from a port whose last connection may not have ended yet on the client's side.
    pub fn connect_again(&self, port: u16, to: SocketAddrV4) -> TcpStream {
        let start = Instant::now();
        loop {
            match self.connect(port, to) {
                Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                    assert!(start.elapsed() < PATIENCE, "{error}");
                    thread::sleep(Duration::from_millis(1));
                }
                outcome => return outcome.unwrap(),
            }
        }
    }

    /// Waits until a counter has reached a value.
    pub fn wait(&self, counter: fn(&Counters) -> &AtomicU64, value: u64) {
        let start = Instant::now();
        while counter(&self.counters).load(Ordering::Relaxed) != value {
            assert!(
                start.elapsed() < PATIENCE,
                "{:?} is not {value}",
                self.counters
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// How many RSTs have left the server's host.
    pub fn resets(&self) -> u64 {
        let shown = self.lan.server.exec("nft", &["list", "counters"]);
        let (_, count) = shown.split_once("packets ").unwrap();
        count.split(' ').next().unwrap().parse().unwrap()
    }

    pub fn stop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let ended = thread.stop();
            assert!(thread::panicking() || ended.is_ok());
        }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Makes a listener like the relay's own, but transparent, because tproxy demands that.
fn transparent() -> TcpListener {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_ip_transparent_v4(true).unwrap();
    socket
        .bind(&SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).into())
        .unwrap();
    socket.listen(128).unwrap();
    socket.into()
}

/// Makes an MPTCP listener in the namespace, whose connections are given to `serve`.
pub fn mptcp_server(
    namespace: &Namespace,
    address: SocketAddrV4,
    serve: impl Fn(TcpStream) + Send + Sync + 'static,
) {
    let listener: TcpListener = namespace.run(|| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket.bind(&SocketAddr::V4(address).into()).unwrap();
        socket.listen(128).unwrap();
        assert_eq!(socket.protocol().unwrap(), Some(Protocol::MPTCP));
        socket.into()
    });
    let serve = Arc::new(serve);
    // The thread ends with the process; the namespace may end before.
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(stream));
        }
    });
}

/// Tells the client its address and port as the server sees them, then sends back whatever comes until it ends.
pub fn echo(mut stream: TcpStream) {
    let peer = stream.peer_addr().unwrap();
    writeln!(stream, "{peer}").unwrap();
    let mut input = stream.try_clone().unwrap();
    let _ = io::copy(&mut input, &mut stream);
}

/// Tells the client its address and port as the server sees them, and closes first.
pub fn whoami(mut stream: TcpStream) {
    let peer = stream.peer_addr().unwrap();
    writeln!(stream, "{peer}").unwrap();
}

pub fn line(stream: &mut TcpStream) -> SocketAddrV4 {
    common::line(stream).parse().unwrap()
}

pub fn all_local(address: Ipv4Addr) -> SocketAddrV4 {
    SocketAddrV4::new(address, 80)
}
