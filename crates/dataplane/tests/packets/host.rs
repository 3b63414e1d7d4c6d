//! A data server's host: a network namespace of its own, which ends with the test that made it.

use std::{
    fs::File,
    io,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use nix::{
    sched::{
        CloneFlags, CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity, setns, unshare,
    },
    unistd::Pid,
};
use socket2::{Domain, Protocol, Socket, Type};

use crate::{
    cluster::{CLUSTER, CS, OTHER_CS, ds},
    network,
    segment::Segment,
};

/// A client on the host itself, for connections that its kernel makes without any of our programs.
pub const LOCAL_CLIENT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

/// While this lives, its thread is in a namespace of its own. It goes back when this is dropped.
#[must_use]
pub struct OwnHost {
    namespace: File,
    processors: CpuSet,
}

/// Takes this thread, and the threads that it starts, into a new namespace. The cluster address, data servers 0 and 1,
/// both connection servers and [`LOCAL_CLIENT`] are local there, and every other client is reached through an interface
/// that swallows all packets. Everything runs on one processor, so what is sent over the loopback has passed our
/// program and TCP before the next packet is sent.
pub fn own_host() -> OwnHost {
    let before = OwnHost {
        namespace: File::open("/proc/thread-self/ns/net").unwrap(),
        processors: sched_getaffinity(Pid::from_raw(0)).unwrap(),
    };
    stay_on_one_processor();
    unshare(CloneFlags::CLONE_NEWNET).expect("a namespace needs root");
    network::set_up(&[CLUSTER, ds(0), ds(1), CS, OTHER_CS, LOCAL_CLIENT]);
    send_once();
    before
}

impl Drop for OwnHost {
    fn drop(&mut self) {
        setns(&self.namespace, CloneFlags::CLONE_NEWNET).unwrap();
        sched_setaffinity(Pid::from_raw(0), &self.processors).unwrap();
    }
}

/// Makes servers here retransmit only after longer than any test takes, however busy the machine is. A kernel that
/// does not know the first of these settings retransmits after 200 ms.
fn send_once() {
    let settings = [("tcp_rto_min_us", "10000000"), ("tcp_early_retrans", "0")];
    for (name, value) in settings {
        let set = std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value);
        let is_there = !matches!(&set, Err(error) if error.kind() == io::ErrorKind::NotFound);
        assert!(set.is_ok() || !is_there, "{name}: {set:?}");
    }
}

/// Lets servers retransmit as early as the kernel does by default, from here on.
pub fn send_again() {
    let least = "/proc/sys/net/ipv4/tcp_rto_min_us";
    if std::path::Path::new(least).exists() {
        std::fs::write(least, "200000").unwrap();
    }
}

/// Keeps this thread, and those that it starts, on one processor.
pub fn stay_on_one_processor() {
    let mut one = CpuSet::new();
    one.set(sched_getcpu().unwrap()).unwrap();
    sched_setaffinity(Pid::from_raw(0), &one).unwrap();
}

pub fn listen(at: SocketAddrV4) -> TcpListener {
    TcpListener::bind(at).unwrap()
}

/// Listens as programs do that share a port among their processes.
pub fn listen_shared(at: SocketAddrV4) -> TcpListener {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_reuse_port(true).unwrap();
    socket.bind(&SocketAddr::V4(at).into()).unwrap();
    socket.listen(64).unwrap();
    socket.into()
}

/// Listens as Go's `net.Listen` does. Returns None if this kernel has no MPTCP, or if MPTCP is off.
pub fn listen_mptcp(at: SocketAddrV4) -> Option<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).ok()?;
    socket.bind(&SocketAddr::V4(at).into()).unwrap();
    socket.listen(64).unwrap();
    Some(socket.into())
}

/// Accepts a connection within five seconds.
pub fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    let until = std::time::Instant::now() + Duration::from_secs(5);
    listener.set_nonblocking(true).unwrap();
    loop {
        match listener.accept() {
            Ok((stream, from)) => {
                stream.set_nonblocking(false).unwrap();
                let patience = Some(Duration::from_secs(5));
                stream.set_read_timeout(patience).unwrap();
                return (stream, from);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                assert!(std::time::Instant::now() < until, "nothing to accept");
                thread::sleep(Duration::from_millis(1));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Whether no connection is waiting to be accepted.
pub fn nothing_to_accept(listener: &TcpListener) -> bool {
    listener.set_nonblocking(true).unwrap();
    let refused = listener.accept().err();
    refused.is_some_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// A connection that the kernel made, both its ends, and their initial sequence numbers.
pub struct Connection {
    pub client: TcpStream,
    pub server: TcpStream,
    pub from: SocketAddrV4,
    pub isn: u32,
    pub server_isn: u32,
}

pub fn connect(listener: &TcpListener, to: SocketAddrV4) -> Connection {
    // A raw socket sees every TCP packet that arrives here, so also the SYN.
    let wire = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::TCP)).unwrap();
    let client = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let from = SocketAddr::from((LOCAL_CLIENT, 0));
    client.bind(&from.into()).unwrap();
    client.connect(&SocketAddr::V4(to).into()).unwrap();
    let client: TcpStream = client.into();
    let (server, SocketAddr::V4(from)) = accept(listener) else {
        panic!("an IPv4 listener accepts IPv4");
    };
    let (isn, server_isn) = isns(wire, from);
    Connection {
        isn,
        server_isn,
        client,
        server,
        from,
    }
}

/// Returns the initial sequence numbers of this client and of its server, which the SYN-ACK both has.
fn isns(wire: Socket, from: SocketAddrV4) -> (u32, u32) {
    use std::io::Read as _;
    wire.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut packet = [0; 2048];
    loop {
        let bytes = (&wire).read(&mut packet).unwrap();
        let (_, tcp) = etherparse::Ipv4Header::from_slice(&packet[..bytes]).unwrap();
        let (tcp, _) = etherparse::TcpHeader::from_slice(tcp).unwrap();
        if tcp.syn && tcp.ack && tcp.destination_port == from.port() {
            let isn = tcp.acknowledgment_number.wrapping_sub(1);
            return (isn, tcp.sequence_number);
        }
    }
}

/// Sends LCCP from the connection server to this node, over this host's loopback.
pub fn send_lccp(node: Ipv4Addr, message: &[u8]) {
    send_lccp_from(CS, node, message);
}

/// Sends LCCP to this node from another node, whose address is on this host.
pub fn send_lccp_from(from: Ipv4Addr, node: Ipv4Addr, message: &[u8]) {
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(253))).unwrap();
    socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
    let to = SocketAddr::from((node, 0));
    assert_eq!(socket.send_to(message, &to.into()).unwrap(), message.len());
}

/// Sends a client's packet without a message around it.
pub fn send_plain(packet: &Segment) {
    send_ip(*packet.to.ip(), &packet.packet());
}

/// Sends an IP packet to this address of this host.
pub fn send_ip(to: Ipv4Addr, packet: &[u8]) {
    let kind = Type::from(nix::libc::SOCK_RAW);
    let socket = Socket::new(Domain::IPV4, kind, Some(Protocol::from(255))).unwrap();
    let to = SocketAddr::from((to, 0));
    assert_eq!(socket.send_to(packet, &to.into()).unwrap(), packet.len());
}

/// Waits at most five seconds for something that the kernel does a little later. The caller checks whether it has
/// happened.
pub fn until(done: impl Fn() -> bool) {
    let end = std::time::Instant::now() + Duration::from_secs(5);
    while !done() && std::time::Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
}
