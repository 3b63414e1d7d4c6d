//! Joins the program's end of one connection to its far end.

use std::{future::poll_fn, io, pin::pin, task::Poll, time::Duration};

use baton_core::counters::count;
use socket2::{SockRef, Socket};
use tokio::{io::copy_bidirectional_with_sizes, net::TcpStream, task::unconstrained};

use crate::{Counters, FarStream};

/// The number of bytes that are buffered in each direction of a connection. An end that does not read stops the other
/// end, not the agent.
const BUFFER: usize = 64 * 1024;

/// The largest segment between a program and the agent. With the kernel's overhead it stays below 16 KB, so the kernel
/// rounds its memory up to 16 KB and no more.
const SEGMENT: u32 = 15 << 10;

/// Sets the options that a socket to a program must have before it connects.
///
/// - Linger: if the connection ends before its relay has, even because the agent's process ends, the program must not
///   mistake a part for the whole: it sees a RST.
/// - Segment size: a program's send buffer grows to twenty segments and more (`tcp_sndbuf_expand`). With segments of
///   64 KB, as on loopback, a client that does not read would cost a node about three megabytes.
pub(crate) fn prepare(socket: &Socket) -> io::Result<()> {
    socket.set_linger(Some(Duration::ZERO))?;
    socket.set_tcp_mss(SEGMENT)
}

/// Carries bytes and half-closes in both directions until both have ended. A reset of one end becomes a reset of the
/// other.
pub(crate) async fn relay<S: FarStream>(mut local: TcpStream, mut far: S, counters: &Counters) {
    // A small write of either end must not wait here for an acknowledgement.
    let ended = match local.set_nodelay(true) {
        Ok(()) => carry(&mut local, &mut far).await,
        Err(error) => Err(error),
    };
    match ended {
        Ok(_) => {
            // Nothing is left to lose, and the far end of TIME_WAIT needs no RST.
            let _ = SockRef::from(&local).set_linger(None);
            count(&counters.finished);
        }
        Err(error) => {
            tracing::debug!(%error, "a virtual socket's connection was reset");
            far.reset();
            count(&counters.reset);
        }
    }
}

/// Carries bytes until both directions have ended, or either end has broken.
///
/// A program that does not read must hear of a break of the far end as well, as its kernel would have told it. It
/// still gets the bytes that arrived before the break and that it has room for. The rest is lost, like bytes that a
/// peer's window has no room for.
async fn carry<S: FarStream>(local: &mut TcpStream, far: &mut S) -> io::Result<()> {
    let broken = far.broken();
    let mut copying = pin!(copy_bidirectional_with_sizes(local, far, BUFFER, BUFFER));
    tokio::select! {
        biased;
        ended = &mut copying => return ended.map(drop),
        () = broken => {}
    }
    let mut rest = unconstrained(copying);
    let ended = poll_fn(|cx| Poll::Ready(pin!(&mut rest).poll(cx))).await;
    match ended {
        Poll::Ready(ended) => ended.map(drop),
        Poll::Pending => Err(io::ErrorKind::ConnectionReset.into()),
    }
}
