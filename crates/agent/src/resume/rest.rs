//! Sends the rest of a response: discards the part that the client has, and passes on what follows.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use baton_abi::{RESPONSE_BODY, RESPONSE_COMPLETE, Response};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpCongestion;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::ordered::{Found, Opened};
use crate::pass::{pass_both_ways, read_away};
use crate::position::{self, Position};

/// Is called with a connection's socket and the state of its response before any of the rest leaves, because nobody
/// else sees where that response ends.
pub type Witness = Box<dyn Fn(BorrowedFd<'_>, &Response) + Send + Sync>;

/// Passes on what the client does not have yet of the response, whose first byte is at `start`, and whatever follows
/// the response. The client's socket says how much the client has.
///
/// # Errors
/// The client has more than the whole response, or one of the connections broke. Both connections are reset.
pub(super) async fn pass_on(
    mut client: TcpStream,
    start: u32,
    found: Found,
    opened: Opened,
    witness: &Witness,
) -> io::Result<()> {
    let Opened { server, read } = opened;
    client.set_nodelay(true)?;
    // The length is below 4 GiB, and what is skipped too: the difference of two sequence numbers is exact.
    let Position {
        send: next,
        receive: asked,
    } = position::of(&client)?;
    let skip = u64::from(next.wrapping_sub(start));
    if skip > found.length {
        return Err(io::Error::other(
            "the client has more than the whole response",
        ));
    }
    let left = found.length - skip;
    let state = if left == 0 {
        RESPONSE_COMPLETE
    } else {
        RESPONSE_BODY
    };
    let rest = Response {
        left,
        next,
        start,
        asked,
        answered: asked,
        state: state as u8, // a byte in C
        responses: 1,
        ..Response::default()
    };
    witness(client.as_fd(), &rest);
    go_by_losses(&client);
    let here = (read.len() as u64).min(skip);
    read_away(&server, skip - here).await?;
    client.write_all(&read[here as usize..]).await?; // at most read.len()
    let owed = left.saturating_sub(read.len() as u64 - here);
    drop(read);
    pass_both_ways(&client, &server, owed).await
}

/// Has the kernel find out by losses how much the path to this client carries. BBR goes by what is acknowledged in a
/// round trip, so it takes a client whose buffer is full for a path of some kilobits, and a client whose response is
/// resumed often has a full buffer. Where there is no CUBIC, the host's choice stays.
fn go_by_losses(client: &TcpStream) {
    // The connection works without CUBIC too, only slowly for some clients.
    let _ = setsockopt(client, TcpCongestion, &OsString::from("cubic"));
}
