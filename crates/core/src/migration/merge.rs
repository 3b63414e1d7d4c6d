//! An entry that comes, and one that is here.

use baton_abi::{LCCP_TCB_STRICT, TCB_ADOPTING, TCB_PINNED, TCB_PUNTED, TCB_WAITING};
use baton_wire::TcbEntry;

/// As far from where a connection is, a sequence number is of another one (`NEAR_SEQ` of `bpf/cs/tcb.h`).
const NEAR: u32 = 1 << 16;

/// What the table is to hold of a connection, of which it holds `here` and `came` comes; `None`: what it
/// holds already is newer.
///
/// Newer is who has seen more of the client's bytes, then more of its acknowledgements. With no data in
/// between that is all there is to tell by, and then what comes counts, because an owner may have changed
/// without a packet of the client.
pub fn merge(here: Option<&TcbEntry>, came: &TcbEntry) -> Option<TcbEntry> {
    // User space of the other node has the request that this was about.
    let came = &without(came, TCB_PUNTED);
    let Some(here) = here else {
        return Some(*came);
    };
    let ahead = distance(came.last_seq, here.last_seq);
    if ahead.unsigned_abs() > NEAR {
        // The ports have been used again: the later connection counts, and at the same time that here.
        return (came.age < here.age).then_some(*came);
    }
    if is_found(here) && !is_found(came) && distance(came.next_request, here.last_seq) <= 0 {
        return Some(with_what_was_seen(came, here));
    }
    let acknowledged = distance(came.last_ack, here.last_ack);
    (ahead < 0 || ahead == 0 && acknowledged <= 0).then_some(*came)
}

/// Whether the entry may have been made by asking (`bpf/cs/enter.h`), and so knows of no request.
fn is_found(entry: &TcbEntry) -> bool {
    u32::from(entry.state) & TCB_PINNED != 0
}

/// Nothing of the next request has come here, so what comes still tells where it begins. Who has the
/// connection was asked here.
fn with_what_was_seen(came: &TcbEntry, here: &TcbEntry) -> TcbEntry {
    let mut entry = without(came, TCB_ADOPTING);
    if distance(entry.last_seq, here.last_seq) > 0 {
        entry.last_seq = here.last_seq;
    }
    if distance(entry.last_ack, here.last_ack) > 0 {
        // As the program does when a response begins to be acknowledged.
        entry = without(&entry, TCB_WAITING);
        entry.last_ack = here.last_ack;
    }
    if entry.owner != here.owner {
        (entry.owner, entry.previous) = (here.owner, None);
        // How many requests that one has had is known to nobody here: it is asked (bpf/cs/strict.h).
        if u32::from(entry.marks) & LCCP_TCB_STRICT != 0 {
            entry.state |= TCB_PINNED as u8; // a bit that C keeps in a byte
        }
    }
    entry.age = entry.age.min(here.age);
    entry
}

fn without(entry: &TcbEntry, states: u32) -> TcbEntry {
    TcbEntry {
        state: entry.state & !(states as u8), // bits that C keeps in a byte
        ..*entry
    }
}

/// How far `b` is ahead of `a`; negative: behind.
const fn distance(a: u32, b: u32) -> i32 {
    b.wrapping_sub(a).cast_signed()
}
