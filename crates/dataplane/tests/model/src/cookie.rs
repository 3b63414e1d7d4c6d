//! Which guesses of a forger are cookies. A cookie is all that a new client has, so whoever guesses one is as good as
//! that client: one guess in eight million, and sequences make that many.

use std::net::SocketAddrV4;

use baton_wire::siphash24;

use crate::{
    cluster::{HTTP, key},
    packet::Packet,
};

/// A period in nanoseconds, as a power of two (COOKIE_PERIOD_SHIFT in bpf/cookie.h).
const PERIOD_SHIFT: u32 = 38;

/// Whether the program takes what a packet acknowledges for a cookie of its own, at this wall clock: with first data, whose
/// sequence number is the one after the client's SYN, or with a probe before it, which repeats that of the SYN.
pub fn has_cookie(packet: &Packet, now: u64) -> bool {
    let cookie = packet.ack.wrapping_sub(1);
    let period = now >> PERIOD_SHIFT;
    // Those around it as well: the clock goes on until the program looks.
    (period - 2..=period + 1).any(|period| {
        [packet.seq, packet.seq.wrapping_sub(1)]
            .iter()
            .any(|isn| cookie >> 8 == mac(packet.client, *isn, period, cookie as u8) >> 8)
    })
}

/// The lower half of the hash of which the upper 24 bits are the cookie's (bpf/cookie.h).
fn mac(client: SocketAddrV4, isn: u32, period: u64, low: u8) -> u32 {
    let address = |at: SocketAddrV4| u64::from(u32::from_le_bytes(at.ip().octets()));
    let port = |at: SocketAddrV4| u64::from(at.port().swap_bytes());
    let words = [
        address(client) << 32 | address(HTTP),
        u64::from(isn) << 32 | port(client) << 16 | port(HTTP),
        period << 8 | u64::from(low),
    ];
    siphash24(
        key().cookie().words(),
        &words.map(u64::to_le_bytes).concat(),
    ) as u32
}
