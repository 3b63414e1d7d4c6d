//! Telling the LAN which MAC an address has now, after it moved to this host.
//!
//! A protocol contributes frames ([`arp::gratuitous`] for IPv4); [`announce`] sends any.

pub mod arp;

use std::num::NonZeroU32;
use std::time::Duration;

use crate::packet_socket::PacketSocket;
use crate::{Link, Result};

/// A whole Ethernet frame.
pub type Frame = Vec<u8>;

/// Sends all `frames` out of `link`, `times` times with `gap` in between. A host that missed one
/// hears the next; RFC 5227 section 3 sends two, two seconds apart.
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
    for round in 0..times.get() {
        if round > 0 {
            tokio::time::sleep(gap).await;
        }
        for frame in frames {
            socket.send(frame)?;
        }
    }
    Ok(())
}
