//! Entries whose response moves from a data server that drains to another one, changed in place.

use std::os::fd::AsFd as _;

use baton_abi::{MOVE_BACK, MOVE_BEGIN, MOVE_DONE, MOVE_ORPHANED, Moving as Argument, Tcb, TcbKey};
use zerocopy::IntoBytes as _;

use crate::{Error, Orphans, connection_server::orphans::run};

/// The entry whose response moves, and the data servers between which it moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moving {
    /// The connection of the entry.
    pub key: TcbKey,
    /// Condition: the current request begins at this sequence number.
    pub request_seq: u32,
    /// Index of the data server that has the connection.
    pub from: u16,
    /// Index of the data server that is to have the connection.
    pub to: u16,
}

/// A step of a move, which has happened or is about to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The connection is the next owner's as soon as its last owner lets go.
    Begin,
    /// The connection stays at its last owner.
    Back,
    /// The next owner has the connection.
    Done,
    /// The last owner no longer has the connection, and the next one does not have it yet: it is to be resumed.
    Orphaned,
}

impl Orphans {
    /// Changes the entry, and returns it as it is after the step. `None` if the entry is another one by now, or in
    /// another state.
    pub fn step(&self, moving: Moving, step: Step) -> Result<Option<Tcb>, Error> {
        let number = match step {
            Step::Begin => MOVE_BEGIN,
            Step::Back => MOVE_BACK,
            Step::Done => MOVE_DONE,
            Step::Orphaned => MOVE_ORPHANED,
        };
        let mut argument = Argument {
            key: moving.key,
            request_seq: moving.request_seq,
            from: moving.from,
            to: moving.to,
            step: number as u16, // four small numbers
            ..Argument::default()
        };
        run("move", self.moves.as_fd(), argument.as_mut_bytes())?;
        Ok((argument.found != 0).then_some(argument.tcb))
    }
}
