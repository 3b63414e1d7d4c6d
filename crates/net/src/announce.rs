//! Tells the LAN which MAC address an IP address has after it moved to this host.
//!
//! [`arp::gratuitous`] makes the frames for an IPv4 address; [`announce`] sends frames of any protocol.

pub mod arp;

use std::num::NonZeroU32;
use std::time::Duration;

use crate::packet_socket::PacketSocket;
use crate::{Link, Result};

/// A whole Ethernet frame.
pub type Frame = Vec<u8>;

/// Sends all `frames` out of `link`, `times` times, with a pause of `gap` in between, because an announcement may be
/// lost (RFC 5227, section 2.3, asks for two, two seconds apart). A frame for which the send queue has no room is
/// skipped. That is no error, even in the last round.
///
/// # Errors
/// [`crate::Error::System`] without CAP_NET_RAW, or when the link is down.
pub async fn announce(
    link: &Link,
    frames: &[Frame],
    times: NonZeroU32,
    gap: Duration,
) -> Result<()> {
    let socket = PacketSocket::open(link)?;
    repeat(frames, times, gap, |frame| socket.send(frame)).await
}

async fn repeat(
    frames: &[Frame],
    times: NonZeroU32,
    gap: Duration,
    mut send: impl FnMut(&Frame) -> Result<()>,
) -> Result<()> {
    let mut logged = false;
    for round in 0..times.get() {
        if round > 0 {
            tokio::time::sleep(gap).await;
        }
        for frame in frames {
            match send(frame) {
                Err(error) if error.is_full_queue() => {
                    if !std::mem::replace(&mut logged, true) {
                        tracing::warn!(
                            %error,
                            "an address announcement was dropped because the send queue is full; {} more follow, {gap:?} apart",
                            times.get() - 1 - round
                        );
                    }
                }
                result => result?,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::io;

    use super::*;
    use crate::Error;

    /// Announces two frames three times to an interface that answers each frame with `answer`. Returns the outcome and
    /// the frames that were tried.
    fn announce_to(answer: impl Fn(usize) -> Option<i32>) -> (Result<()>, Vec<Frame>) {
        let frames = [vec![1], vec![2]];
        let mut tried = Vec::new();
        let send = |frame: &Frame| {
            tried.push(frame.clone());
            match answer(tried.len() - 1) {
                Some(errno) => Err(Error::system("send")(io::Error::from_raw_os_error(errno))),
                None => Ok(()),
            }
        };
        let three = NonZeroU32::new(3).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let outcome = runtime.block_on(repeat(&frames, three, Duration::from_millis(1), send));
        (outcome, tried)
    }

    #[test]
    fn a_full_queue_is_no_error_and_the_next_round_follows() {
        for errno in [libc::ENOBUFS, libc::EAGAIN] {
            let (outcome, tried) = announce_to(|at| (at < 2).then_some(errno));
            outcome.unwrap();
            assert_eq!(tried, [[1], [2], [1], [2], [1], [2]]);
            announce_to(|_| Some(errno)).0.unwrap();
        }
    }

    #[test]
    fn any_other_error_ends_the_announcements() {
        let (outcome, tried) = announce_to(|at| (at == 1).then_some(libc::ENETDOWN));
        assert_eq!(outcome.unwrap_err().errno(), Some(libc::ENETDOWN));
        assert_eq!(tried, [[1], [2]]);
    }
}
