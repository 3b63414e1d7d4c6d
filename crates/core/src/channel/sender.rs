//! The sending end.

use std::time::Duration;

use crate::Moment;

/// A channel that was quiet for so long says the number of its last message. Longer than the usual
/// pause between two messages of a busy channel, which shows its holes itself.
const QUIET: Duration = Duration::from_millis(20);

/// What one channel has sent.
#[derive(Clone, Debug, Default)]
pub struct Sender {
    next: Option<u16>,
    moved: Moment,
    announced: bool,
}

impl Sender {
    /// A look at the channel, whose next message will have number `next`. Returns the number that the
    /// receiver is to be told (SYNC), if any.
    pub fn look(&mut self, now: Moment, next: u16) -> Option<u16> {
        if self.next != Some(next) {
            // What was sent before the first look was watched by an earlier daemon.
            self.announced = self.next.is_none();
            self.next = Some(next);
            self.moved = now;
        }
        if self.announced || now.since(self.moved) < QUIET {
            return None;
        }
        self.announced = true;
        Some(next.wrapping_sub(1))
    }
}
