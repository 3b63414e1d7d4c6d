//! Entries whose response moves from a data server that drains to another one, changed in place.

use std::os::fd::AsFd as _;

use baton_abi::{MOVE_BACK, MOVE_BEGIN, MOVE_DONE, MOVE_ORPHANED, Moving as Argument, Tcb, TcbKey};
use zerocopy::IntoBytes as _;

use crate::{Error, Orphans, connection_server::orphans::run};

/// Which entry, and between whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moving {
    /// Of which connection.
    pub key: TcbKey,
    /// If this is its current request.
    pub request_seq: u32,
    /// Who has it, by index.
    pub from: u16,
    /// Who is to have it.
    pub to: u16,
}

/// What has happened, or is about to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is the next one's as soon as its last owner lets go.
    Begin,
    /// It stays where it was.
    Back,
    /// The next one has it.
    Done,
    /// The last owner has not got it any more, and the next one not yet: it is to be resumed.
    Orphaned,
}

impl Orphans {
    /// Changes the entry, and returns it as it is then; None if it is another by now, or in another state.
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
