//! The sequence numbers of an adopted connection, whose socket was made in the middle of its life.

use std::io;
use std::os::fd::AsFd;

use nix::sys::socket::sockopt::ReuseAddr;
use nix::sys::socket::{getsockopt, setsockopt};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};

/// TCP_REPAIR_OFF_NO_WP of linux/tcp.h: ends repair mode without a window probe to the peer.
const OFF_NO_WINDOW_PROBE: i32 = -1;
/// TCP_SEND_QUEUE of linux/tcp.h.
const SEND_QUEUE: i32 = 2;
/// TCP_RECV_QUEUE of linux/tcp.h.
const RECEIVE_QUEUE: i32 = 1;

sockopt_impl!(
    /// Repair mode: whether the socket's state can be read and written.
    Repair, SetOnly, libc::IPPROTO_TCP, libc::TCP_REPAIR, i32
);
sockopt_impl!(
    /// The queue that `QueueSeq` is about.
    RepairQueue, SetOnly, libc::IPPROTO_TCP, libc::TCP_REPAIR_QUEUE, i32
);
sockopt_impl!(
    /// The sequence number behind the queue that `RepairQueue` has chosen.
    QueueSeq, GetOnly, libc::IPPROTO_TCP, libc::TCP_QUEUE_SEQ, u32
);

/// The number of 64-bit words of `struct tcp_info` of linux/tcp.h, as far as it is read here.
const INFO_WORDS: usize = 17;
/// The word `tcpi_bytes_acked`.
const BYTES_ACKNOWLEDGED: usize = 15;
/// The word `tcpi_bytes_received`.
const BYTES_RECEIVED: usize = 16;

sockopt_impl!(
    /// What the kernel says of a connection.
    Info, GetOnly, libc::IPPROTO_TCP, libc::TCP_INFO, [u64; INFO_WORDS]
);

/// Returns how many bytes have come since the connection's socket was made, modulo 2^32. A FIN counts as one.
///
/// # Errors
/// That of getsockopt().
pub fn received(socket: &impl AsFd) -> io::Result<u32> {
    let info = getsockopt(socket, Info)?;
    Ok(info[BYTES_RECEIVED] as u32) // its lower half
}

/// Returns how many bytes the other side has acknowledged since the connection's socket was made.
///
/// # Errors
/// That of getsockopt().
pub fn acknowledged(socket: &impl AsFd) -> io::Result<u64> {
    let info = getsockopt(socket, Info)?;
    Ok(info[BYTES_ACKNOWLEDGED])
}

/// Where a connection is.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// The sequence number of the next byte that this end will write.
    pub send: u32,
    /// The sequence number of the next byte that this end expects.
    pub receive: u32,
}

/// Returns where the connection of a socket is. Needs CAP_NET_ADMIN. If this process dies meanwhile, the kernel forgets
/// the connection without a RST (tcp_disconnect() in net/ipv4/tcp.c), and its client is told nothing.
///
/// # Errors
/// That of setsockopt() or getsockopt(). The socket may then still be in repair mode.
pub fn of(socket: &impl AsFd) -> io::Result<Position> {
    setsockopt(socket, Repair, &1)?;
    let behind =
        |queue| setsockopt(socket, RepairQueue, &queue).and_then(|()| getsockopt(socket, QueueSeq));
    let (send, receive) = (behind(SEND_QUEUE), behind(RECEIVE_QUEUE));
    let off = setsockopt(socket, Repair, &OFF_NO_WINDOW_PROBE);
    // Repair mode clears this when it ends, and no server could bind to the port while this connection exists.
    setsockopt(socket, ReuseAddr, &true)?;
    off?;
    Ok(Position {
        send: send?,
        receive: receive?,
    })
}
