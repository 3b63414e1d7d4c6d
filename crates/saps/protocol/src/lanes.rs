//! What is to be sent, and whose turn it is.

use std::collections::VecDeque;

use crate::wire::{Frame, Tag};

use super::ConnectionId;

/// How many answers may wait to be sent: of a channel that is read there are never more than the other end has
/// closed or asked for at once.
pub(super) const MAX_ANSWERS: usize = 1 << 18;

#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Sent before any message: few and short.
    control: VecDeque<Frame>,
    /// The connections that may have something to send, each once.
    pub(super) turns: VecDeque<ConnectionId>,
}

impl Lane {
    pub(super) fn is_empty(&self) -> bool {
        self.control.is_empty() && self.turns.is_empty()
    }
}

/// At least one.
#[derive(Debug)]
pub(super) struct Lanes {
    all: Box<[Lane]>,
    /// How many frames of `control` the other end has called forth.
    answers: usize,
}

impl Lanes {
    pub(super) fn new(count: usize) -> Self {
        Self {
            all: (0..count.max(1)).map(|_| Lane::default()).collect(),
            answers: 0,
        }
    }

    /// Where everything about a connection goes.
    pub(super) fn of(&self, tag: Tag) -> usize {
        // The lowest bit only says who made it.
        (tag.0 >> 1) as usize % self.all.len()
    }

    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    pub(super) fn lane(&mut self, lane: usize) -> Option<&mut Lane> {
        self.all.get_mut(lane)
    }

    /// Whether more answers wait than there can be for an other end that reads.
    pub(super) fn are_unread(&self) -> bool {
        self.answers > MAX_ANSWERS
    }

    /// What is to be sent next on a lane before any message.
    pub(super) fn next_control(&mut self, lane: usize) -> Option<Frame> {
        let frame = self.all.get_mut(lane)?.control.pop_front()?;
        self.answers -= usize::from(is_answer(&frame));
        Some(frame)
    }

    /// What is about a connection.
    pub(super) fn say(&mut self, tag: Tag, frame: Frame) {
        self.push(self.of(tag), frame);
    }

    /// What is about the channel: on the first lane, of which there is always one.
    pub(super) fn say_first(&mut self, frame: Frame) {
        self.push(0, frame);
    }

    pub(super) fn give_turn(&mut self, tag: Tag, id: ConnectionId) {
        let lane = self.of(tag);
        self.all[lane].turns.push_back(id);
    }

    /// `lane` is below the count.
    fn push(&mut self, lane: usize, frame: Frame) {
        self.answers += usize::from(is_answer(&frame));
        self.all[lane].control.push_back(frame);
    }
}

/// Whether the other end decides how many of these there are.
fn is_answer(frame: &Frame) -> bool {
    matches!(
        frame,
        Frame::ConnectionClosed { .. } | Frame::Exception { .. } | Frame::NotListening { .. }
    )
}
