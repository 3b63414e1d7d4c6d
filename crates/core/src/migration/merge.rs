//! An entry that comes, and one that is here.

use baton_wire::TcbEntry;

/// As far from where a connection is, a sequence number is of another one (`NEAR_SEQ` of `bpf/connection_server/tcb.h`).
const NEAR: u32 = 1 << 16;

/// What the table is to hold of a connection, of which it holds `here` and `came` comes; `None`: what it
/// holds already is newer.
///
/// Newer is who has seen more of the client's bytes, then more of its acknowledgements. With no data in
/// between that is all there is to tell by, and then what comes counts, because an owner may have changed
/// without a packet of the client.
pub fn merge(here: Option<&TcbEntry>, came: &TcbEntry) -> Option<TcbEntry> {
    let Some(here) = here else {
        return Some(*came);
    };
    let ahead = distance(came.last_seq, here.last_seq);
    if ahead.unsigned_abs() > NEAR {
        // The ports have been used again: the later connection counts, and at the same time that here.
        return (came.age < here.age).then_some(*came);
    }
    let acknowledged = distance(came.last_ack, here.last_ack);
    (ahead < 0 || ahead == 0 && acknowledged <= 0).then_some(*came)
}

/// How far `b` is ahead of `a`; negative: behind.
const fn distance(a: u32, b: u32) -> i32 {
    b.wrapping_sub(a).cast_signed()
}
