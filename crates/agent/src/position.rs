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

/// Where a connection is.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// The sequence number of the next byte that this end will write.
    pub send: u32,
    /// The sequence number of the next byte that this end expects.
    pub receive: u32,
}

/// Returns where the connection of a socket is. Needs CAP_NET_ADMIN.
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
