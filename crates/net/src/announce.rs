//! Tells the LAN which MAC address an IP address has after it moved to this host.
//!
//! A protocol contributes frames ([`arp::gratuitous`] for IPv4); [`announce`] sends any.

pub mod arp;

use std::num::NonZeroU32;
use std::time::Duration;

use crate::packet_socket::PacketSocket;
use crate::{Link, Result};

/// A whole Ethernet frame.
pub type Frame = Vec<u8>;

/// Sends all `frames` out of `link`, `times` times with `gap` in between. A host that missed one announcement hears the
/// next; RFC 5227 section 3 sends two, two seconds apart. So it is not an error if a full queue of the interface does
/// not take a frame: the next announcement tries again.
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
                            "an address announcement was dropped: the queue is full; {} more follow, {gap:?} apart",
                            times.get() - 1 - round
                        );
                    }
                }
                done => done?,
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
    fn a_full_queue_is_tried_again() {
        for errno in [libc::ENOBUFS, libc::EAGAIN] {
            let (outcome, tried) = announce_to(|at| (at < 2).then_some(errno));
            outcome.unwrap();
            assert_eq!(tried, [[1], [2], [1], [2], [1], [2]]);
            announce_to(|_| Some(errno)).0.unwrap();
        }
    }

    #[test]
    fn any_other_error_ends_it() {
        let (outcome, tried) = announce_to(|at| (at == 1).then_some(libc::ENETDOWN));
        assert_eq!(outcome.unwrap_err().errno(), Some(libc::ENETDOWN));
        assert_eq!(tried, [[1], [2]]);
    }
}
