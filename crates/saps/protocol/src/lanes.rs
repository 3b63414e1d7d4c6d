//! The frames that wait to be sent, and the connections that wait for their turn.

use std::collections::VecDeque;

use crate::wire::{Frame, Tag};

use super::ConnectionId;

/// The most answers that may wait to be sent. If the other end reads, there are never more than it has closed or asked
/// for at the same time.
pub(super) const MAX_ANSWERS: usize = 1 << 18;

#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Frames that are sent before any message: few and short.
    control: VecDeque<Frame>,
    /// The connections that may have something to send, each at most once.
    pub(super) turns: VecDeque<ConnectionId>,
}

impl Lane {
    pub(super) fn is_empty(&self) -> bool {
        self.control.is_empty() && self.turns.is_empty()
    }
}

/// All lanes of a link, at least one.
#[derive(Debug)]
pub(super) struct Lanes {
    all: Box<[Lane]>,
    /// How many frames in the `control` queues are answers to the other end.
    answers: usize,
}

impl Lanes {
    pub(super) fn new(count: usize) -> Self {
        Self {
            all: (0..count.max(1)).map(|_| Lane::default()).collect(),
            answers: 0,
        }
    }

    /// The lane that all frames about a connection are on.
    pub(super) fn of(&self, tag: Tag) -> usize {
        // The lowest bit only says who made the connection.
        (tag.0 >> 1) as usize % self.all.len()
    }

    pub(super) fn lane(&mut self, lane: usize) -> Option<&mut Lane> {
        self.all.get_mut(lane)
    }

    /// Whether more answers wait than are possible if the other end reads.
    pub(super) fn are_unread(&self) -> bool {
        self.answers > MAX_ANSWERS
    }

    /// Takes the next frame that a lane sends before any message.
    pub(super) fn next_control(&mut self, lane: usize) -> Option<Frame> {
        let frame = self.all.get_mut(lane)?.control.pop_front()?;
        self.answers -= usize::from(is_answer(&frame));
        Some(frame)
    }

    /// Queues a frame about a connection.
    pub(super) fn say(&mut self, tag: Tag, frame: Frame) {
        self.push(self.of(tag), frame);
    }

    /// Queues a frame about the channel, on the first lane, which always exists.
    pub(super) fn say_first(&mut self, frame: Frame) {
        self.push(0, frame);
    }

    pub(super) fn give_turn(&mut self, tag: Tag, id: ConnectionId) {
        let lane = self.of(tag);
        self.all[lane].turns.push_back(id);
    }

    /// Queues a frame on a lane, whose number must be below the count.
    fn push(&mut self, lane: usize, frame: Frame) {
        self.answers += usize::from(is_answer(&frame));
        self.all[lane].control.push_back(frame);
    }
}

/// Whether the other end decides how many of these frames there are.
fn is_answer(frame: &Frame) -> bool {
    matches!(
        frame,
        Frame::ConnectionClosed { .. } | Frame::Exception { .. } | Frame::NotListening { .. }
    )
}
