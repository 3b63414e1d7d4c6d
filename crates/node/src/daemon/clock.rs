//! The daemon's time, by which it measures everything, above all the silence of other nodes.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use baton_core::{Moment, listening::ListeningClock};

use crate::locked::locked;

/// A clock that stands still while the daemon is not scheduled. It begins at zero with the daemon.
pub struct DaemonClock {
    started: Instant,
    listening: Mutex<ListeningClock>,
}

impl DaemonClock {
    /// Starts the clock of a daemon that sends a HELLO once every `hello`.
    pub fn start(hello: Duration) -> Self {
        Self {
            started: Instant::now(),
            listening: Mutex::new(ListeningClock::new(Moment::default(), usual_look(hello))),
        }
    }

    /// The time by this clock.
    pub fn now(&self) -> Moment {
        let now = Moment::after_epoch(self.started.elapsed());
        locked(&self.listening).look(now)
    }

    /// Adapts the clock to a new interval between two HELLOs.
    pub fn retime(&self, hello: Duration) {
        locked(&self.listening).retime(usual_look(hello));
    }

    /// When the daemon started, by the machine's clock.
    pub fn started(&self) -> Instant {
        self.started
    }
}

/// The longest time between two looks at the clock of a daemon that is scheduled normally. It looks with each HELLO,
/// and one HELLO may be late.
fn usual_look(hello: Duration) -> Duration {
    2 * hello
}
