//! The frames that go out on a channel.

use crate::wire::Frame;

use super::channel::Phase;
use super::connection::Turn;
use super::{Channel, ConnectionId, Event};

impl Channel {
    /// The next frame of a lane and the epoch that it carries, or `None` if nothing can be sent.
    pub fn poll_transmit(&mut self, lane: usize) -> Option<(u32, Frame)> {
        let epoch = match self.phase {
            Phase::Down => return None,
            Phase::Greeting { .. } => 0,
            Phase::Up { peer_epoch } => peer_epoch,
        };
        if let Some(frame) = self.lanes.next_control(lane) {
            let epoch = match frame {
                Frame::Hello(_) => 0,
                _ => epoch,
            };
            return Some((epoch, frame));
        }
        loop {
            let id = self.lanes.lane(lane)?.turns.pop_front()?;
            if let Some(frame) = self.take_turn(id) {
                return Some((epoch, frame));
            }
        }
    }

    /// Whether [`Channel::poll_transmit`] may have a frame for this lane.
    pub fn wants_to_send(&mut self, lane: usize) -> bool {
        let lane = self.lanes.lane(lane);
        lane.is_some_and(|lane| !lane.is_empty())
    }

    fn take_turn(&mut self, id: ConnectionId) -> Option<Frame> {
        let connection = self.connections.get_mut(&id)?;
        connection.has_turn = false;
        let frame = match connection.take_turn() {
            Turn::Pass => None,
            Turn::Close(frame) => {
                let tag = connection.tag;
                self.tags.remove(&tag);
                self.closing.insert(tag);
                self.connections.remove(&id);
                return Some(frame);
            }
            Turn::Send(frame) => Some(frame),
        };
        if connection.has_news_of_room() {
            self.events.push_back(Event::Writable(id));
        }
        if let Some(Frame::SendMessage { message, .. }) = &frame {
            self.counters.bytes_sent += message.len() as u64;
        }
        self.give_turn(id);
        frame
    }

    /// Gives a turn to a connection that can send and has none yet.
    pub(super) fn give_turn(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let waits = connection.waits_for_credit();
        self.counters.stalls += u64::from(waits && !connection.is_stalled);
        connection.is_stalled = waits;
        if connection.can_send() && !connection.has_turn {
            connection.has_turn = true;
            self.lanes.give_turn(connection.tag, id);
        }
    }
}
