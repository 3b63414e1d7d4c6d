//! How often to look.

use std::time::Duration;

use super::{IDLE_TICK, TICK};
use crate::Moment;

/// So long after the last message the looks become rare.
const IDLE: Duration = Duration::from_secs(1);

/// Looks often while messages come and go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    moved: Moment,
}

impl Pace {
    /// After a look that found something new, or did not: how long until the next one.
    pub fn after_look(&mut self, now: Moment, moved: bool) -> Duration {
        if moved {
            self.moved = now;
        }
        if now.since(self.moved) < IDLE {
            TICK
        } else {
            IDLE_TICK
        }
    }
}
