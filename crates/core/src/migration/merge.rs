//! Which of two entries of the same connection counts: the one that comes or the one that is here.

use baton_wire::TcbEntry;

/// A sequence number that is farther than this from a connection's own belongs to another connection (`NEAR_SEQ`
/// of `bpf/connection_server/tcb.h`).
const NEAR: u32 = 1 << 16;

/// What the table is to hold of a connection when it holds `here` and `came` comes; `None` if what it holds is
/// newer.
///
/// The entry that has seen more of the client's bytes is newer; if both have seen the same, the one that has
/// seen more of its acknowledgements. If these are equal as well, the one that comes counts, because an owner
/// may have changed without a packet of the client.
pub fn merge(here: Option<&TcbEntry>, came: &TcbEntry) -> Option<TcbEntry> {
    let Some(here) = here else {
        return Some(*came);
    };
    let ahead = distance(came.last_seq, here.last_seq);
    if ahead.unsigned_abs() > NEAR {
        // The ports have been used again: the later connection counts, and at equal age the one here.
        return (came.age < here.age).then_some(*came);
    }
    let acknowledged = distance(came.last_ack, here.last_ack);
    (ahead < 0 || ahead == 0 && acknowledged <= 0).then_some(*came)
}

/// How far `b` is ahead of `a`; negative if it is behind.
const fn distance(a: u32, b: u32) -> i32 {
    b.wrapping_sub(a).cast_signed()
}
