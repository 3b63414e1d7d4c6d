//! How often the channels are looked at.

use std::time::Duration;

use super::{IDLE_TICK, TICK};
use crate::Moment;

/// After this long without a message the looks become rare.
const IDLE: Duration = Duration::from_secs(1);

/// Chooses the pause between two looks: short while messages come and go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    moved: Moment,
}

impl Pace {
    /// How long to wait until the next look, after one that found something new (`moved`) or did not.
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
