//! The sending end of a channel.

use std::time::Duration;

use crate::Moment;

/// A channel that was quiet for this long tells the number of its last message. It is longer than the usual
/// pause between two messages of a busy channel, where later messages show the holes.
const QUIET: Duration = Duration::from_millis(20);

/// What one channel has sent, as seen at the last look.
#[derive(Clone, Debug, Default)]
pub struct Sender {
    next: Option<u16>,
    moved: Moment,
    announced: bool,
}

impl Sender {
    /// Looks at the channel; `next` is the number of its next message. Returns the number that the receiver is
    /// to be told (SYNC), if any.
    pub fn look(&mut self, now: Moment, next: u16) -> Option<u16> {
        if self.next != Some(next) {
            // An earlier daemon watched over what was sent before the first look.
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
