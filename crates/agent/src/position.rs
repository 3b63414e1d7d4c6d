//! Where an adopted connection is: its socket was made in the middle of it.

use std::io;
use std::os::fd::AsFd;

use nix::sys::socket::{getsockopt, setsockopt};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};

/// Of tcp(7), TCP_REPAIR: off again, without a packet that asks the peer for its window.
const OFF_IN_SILENCE: i32 = -1;
/// Of linux/tcp.h, TCP_SEND_QUEUE.
const SEND_QUEUE: i32 = 2;
/// The same, TCP_RECV_QUEUE.
const RECEIVE_QUEUE: i32 = 1;

sockopt_impl!(
    /// Whether the socket's state can be read and written.
    Repair, SetOnly, libc::IPPROTO_TCP, libc::TCP_REPAIR, i32
);
sockopt_impl!(
    /// Which queue that is about.
    RepairQueue, SetOnly, libc::IPPROTO_TCP, libc::TCP_REPAIR_QUEUE, i32
);
sockopt_impl!(
    /// The sequence number behind that queue.
    QueueSeq, GetOnly, libc::IPPROTO_TCP, libc::TCP_QUEUE_SEQ, u32
);

/// The sequence numbers of the next byte that is written, and of the next one that comes. Needs CAP_NET_ADMIN.
pub fn next_bytes(socket: &impl AsFd) -> io::Result<(u32, u32)> {
    setsockopt(socket, Repair, &1)?;
    let behind =
        |queue| setsockopt(socket, RepairQueue, &queue).and_then(|()| getsockopt(socket, QueueSeq));
    let (send, receive) = (behind(SEND_QUEUE), behind(RECEIVE_QUEUE));
    setsockopt(socket, Repair, &OFF_IN_SILENCE)?;
    Ok((send?, receive?))
}
