//! One connection: the program's end and the far end, joined.

use std::{future::poll_fn, io, pin::pin, task::Poll, time::Duration};

use socket2::{SockRef, Socket};
use tokio::{io::copy_bidirectional_with_sizes, net::TcpStream, task::unconstrained};

use crate::{Counters, FarStream, counters::count};

/// Bytes buffered in each direction of a connection. Who does not read stops the other end, not the agent.
const BUFFER: usize = 64 * 1024;

/// The largest segment between a program and the agent; with the kernel's own overhead it is below 16 KB, to
/// a power of which the kernel rounds it.
const SEGMENT: u32 = 15 << 10;

/// What a socket to a program must be from its first moment on, so before it is connected.
///
/// - However it ends before its relay has, and be it with the agent's process, the program must not take a part for
///   the whole: it sees a RST.
/// - A program's send buffer grows to twenty segments and more (`tcp_sndbuf_expand`), which on loopback are of 64 KB.
///   So a client that does not read would cost a node some three megabytes.
pub(crate) fn prepare(socket: &Socket) -> io::Result<()> {
    socket.set_linger(Some(Duration::ZERO))?;
    socket.set_tcp_mss(SEGMENT)
}

/// Carries bytes and half-closes both ways until both directions have ended. A reset of one end becomes a
/// reset of the other.
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

/// Until both directions have ended, or either end has broken.
///
/// A program that does not read must hear of a far end that broke as well: its kernel would have told it. What had come
/// before and it has room for it still gets; the rest is lost, as what a peer's window has no room for.
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
