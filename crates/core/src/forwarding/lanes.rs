//! What is to be sent, and whose turn it is.

use std::collections::VecDeque;

use baton_wire::forwarding::{Frame, Tag};

use super::ConnectionId;

#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Sent before any message: few and short.
    pub(super) control: VecDeque<Frame>,
    /// The connections that may have something to send, each once.
    pub(super) turns: VecDeque<ConnectionId>,
}

/// At least one.
#[derive(Debug)]
pub(super) struct Lanes(Box<[Lane]>);

impl Lanes {
    pub(super) fn new(count: usize) -> Self {
        Self((0..count.max(1)).map(|_| Lane::default()).collect())
    }

    /// Where everything about a connection goes.
    pub(super) fn of(&self, tag: Tag) -> usize {
        // The lowest bit only says who made it.
        (tag.0 >> 1) as usize % self.0.len()
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn lane(&mut self, lane: usize) -> Option<&mut Lane> {
        self.0.get_mut(lane)
    }

    /// What is about a connection.
    pub(super) fn say(&mut self, tag: Tag, frame: Frame) {
        let lane = self.of(tag);
        // `of` is below the count.
        self.0[lane].control.push_back(frame);
    }

    /// What is about the channel: on the first lane, of which there is always one.
    pub(super) fn say_first(&mut self, frame: Frame) {
        self.0[0].control.push_back(frame);
    }

    pub(super) fn give_turn(&mut self, tag: Tag, id: ConnectionId) {
        let lane = self.of(tag);
        self.0[lane].turns.push_back(id);
    }
}
