//! The rest of a response: what the client has of it is read away, and what follows is passed on.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd as _;

use baton_abi::{RESPONSE_BODY, RESPONSE_COMPLETE, Response};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpCongestion;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::ordered::Opened;
use super::{Found, Witness};
use crate::pass::{pass_both_ways, read_away};
use crate::position;

/// Passes on what the client does not have yet of the response, whose first byte is at `start`, and whatever follows it. Where
/// the client is, its socket says.
///
/// # Errors
/// The client has more than the whole response; or one of the connections broke. Both are reset.
pub(super) async fn pass_on(
    mut client: TcpStream,
    start: u32,
    found: Found,
    opened: Opened,
    witness: &Witness,
) -> io::Result<()> {
    let Opened { server, read } = opened;
    client.set_nodelay(true)?;
    // Below 4 GiB, which the length is too: the difference of two sequence numbers says all of it.
    let (next, asked) = position::next_bytes(&client)?;
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

/// Has the kernel find out by losses what the way to this client carries. BBR goes by what is acknowledged in
/// a round trip, and takes a client whose buffer is full for a way of some kilobits: and the buffer of one whose
/// response is resumed often is. Where there is no CUBIC, the host's choice stays.
fn go_by_losses(client: &TcpStream) {
    // Works as well without, only for some slowly.
    let _ = setsockopt(client, TcpCongestion, &OsString::from("cubic"));
}
