//! Messages between daemons, each under the key that its two nodes share.

use std::{net::Ipv4Addr, time::Duration};

use baton_net::LccpSocket;
use baton_wire::{Arrival, KeyRing, Message, NodePair, Received, Reject, decode, encode};
use tracing::debug;

use super::heartbeat::clock_now;

/// Encodes a message from the node at `own` to another one; `packet` is the client's packet in it, empty for none.
pub fn seal(
    own: Ipv4Addr,
    keys: &KeyRing,
    to: Ipv4Addr,
    message: &Message,
    packet: &[u8],
) -> Vec<u8> {
    let pair = NodePair { from: own, to };
    encode(message, packet, clock_now(), &keys.with(to).current, pair)
}

/// Sends a message from this socket's node to another one. A failure is only logged, because a message may also be lost
/// on its way.
pub async fn say(
    socket: &LccpSocket,
    keys: &KeyRing,
    to: Ipv4Addr,
    message: &Message,
    packet: &[u8],
) {
    let bytes = seal(socket.own(), keys, to, message, packet);
    if let Err(error) = socket.send_to(&bytes, to).await {
        debug!("{error}");
    }
}

/// Decodes what came from `sender` to the node at `own`.
///
/// # Errors
/// The message is to be dropped, for this reason.
pub fn open<'a>(
    own: Ipv4Addr,
    keys: &KeyRing,
    clock_window: Duration,
    sender: Ipv4Addr,
    payload: &'a [u8],
    came: Arrival,
) -> Result<Received<'a>, Reject> {
    let pair = NodePair {
        from: sender,
        to: own,
    };
    decode(payload, pair, &keys.with(sender), came, clock_window)
}
