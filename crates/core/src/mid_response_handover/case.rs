//! One response that is to move, and how far its move has come.

use std::time::Duration;

use baton_wire::Outcome;

use crate::Moment;
use crate::resume::Known;

/// The owner is told to let go a second time after this long: a response that pauses leaves only then.
const YIELD_SOON: Duration = Duration::from_millis(25);
/// The owner is told to let go again after this long, from the third time on. It must be shorter than the time
/// for which the order counts at the owner.
pub(super) const YIELD_AGAIN: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub(super) struct Case<S> {
    /// The number of the last order for this response.
    pub number: u64,
    pub from: S,
    /// The data servers that can still be asked, the next one last.
    pub servers: Vec<S>,
    pub known: Known,
    pub state: State<S>,
    pub why: Option<Outcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State<S> {
    Waiting,
    /// The owner's own server is asked what the response is.
    Looking {
        again: Moment,
        times: u32,
    },
    /// Another data server is asked whether it has the same response.
    Asked {
        server: S,
        again: Moment,
        times: u32,
    },
    /// The owner was told to let the connection go.
    Yielding {
        server: S,
        again: Moment,
        times: u32,
    },
    /// The owner was told to keep the connection after all; it may have let go already.
    Recalled {
        server: S,
        again: Moment,
        pause: Duration,
    },
    /// The owner has let the connection go.
    Gone {
        server: S,
        again: Moment,
        times: u32,
    },
}

impl<S: Copy> Case<S> {
    pub fn new(from: S, servers: Vec<S>, known: Known) -> Self {
        Self {
            number: 0,
            from,
            servers,
            known,
            state: State::Waiting,
            why: None,
        }
    }

    pub fn set_yielding(&mut self, now: Moment, server: S) {
        self.state = State::Yielding {
            server,
            again: now + YIELD_SOON,
            times: 1,
        };
    }

    pub fn set_gone(&mut self, now: Moment, server: S) {
        self.state = State::Gone {
            server,
            again: now + YIELD_AGAIN,
            times: 0,
        };
    }

    /// The data server that has the response ready, or was asked for it.
    pub fn server(&self) -> Option<S> {
        match self.state {
            State::Waiting => None,
            State::Looking { .. } => Some(self.from),
            State::Asked { server, .. }
            | State::Yielding { server, .. }
            | State::Recalled { server, .. }
            | State::Gone { server, .. } => Some(server),
        }
    }

    /// Whether the connection's entry says that it moves.
    pub fn has_begun(&self) -> bool {
        matches!(
            self.state,
            State::Yielding { .. } | State::Recalled { .. } | State::Gone { .. }
        )
    }

    pub fn timeout(&self) -> Option<Moment> {
        match self.state {
            State::Waiting => None,
            State::Looking { again, .. }
            | State::Asked { again, .. }
            | State::Yielding { again, .. }
            | State::Recalled { again, .. }
            | State::Gone { again, .. } => Some(again),
        }
    }
}
