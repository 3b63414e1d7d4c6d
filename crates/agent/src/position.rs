//! The sequence numbers of an adopted connection, whose socket was made in the middle of its life.

use std::io;
use std::os::fd::AsFd;

use nix::sys::socket::{getsockopt, setsockopt};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};

/// Value of TCP_REPAIR (tcp(7)) that ends repair mode without a packet that asks the peer for its window.
const OFF_IN_SILENCE: i32 = -1;
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

/// Returns the sequence numbers of the next byte that is written, and of the next byte that comes. Needs CAP_NET_ADMIN.
pub fn next_bytes(socket: &impl AsFd) -> io::Result<(u32, u32)> {
    setsockopt(socket, Repair, &1)?;
    let behind =
        |queue| setsockopt(socket, RepairQueue, &queue).and_then(|()| getsockopt(socket, QueueSeq));
    let (send, receive) = (behind(SEND_QUEUE), behind(RECEIVE_QUEUE));
    setsockopt(socket, Repair, &OFF_IN_SILENCE)?;
    Ok((send?, receive?))
}
