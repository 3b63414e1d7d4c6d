//! States of entries.

use crate::{TCB_ADOPTING, TCB_RESUMING, Tcb};

impl Tcb {
    /// The bits of a state that together say that the response moves.
    pub const MOVES: u8 = (TCB_RESUMING | TCB_ADOPTING) as u8; // two bits

    /// Whether the response moves: the entry's owner is to have the connection, and the data server before still does
    /// (`bpf/connection_server/tcb.h`).
    pub fn is_moving(&self) -> bool {
        self.state & Self::MOVES == Self::MOVES
    }
}
