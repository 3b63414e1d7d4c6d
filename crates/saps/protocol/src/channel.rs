//! One end of a channel: the calls that its user makes, and the frames that it sends.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use crate::wire::{
    Errno, Families, Frame, Hello, ListenerTag, Side, SocketOptions, Tag, TakenPort, Way,
};
use baton_wire::Endpoint;
use bytes::Bytes;

use super::connection::{Connection, Stage, Turn};
use super::lanes::Lanes;
use super::{ConnectionId, Counters, Event, Gauges, Received};
use baton_core::Moment;

/// How long this end waits for the Hello of the other end.
pub const HELLO_PATIENCE: Duration = Duration::from_secs(5);

/// One end of a channel. It outlives the links that carry it: when a link is lost, both ends lose all connections on
/// it.
#[derive(Debug)]
pub struct Channel {
    pub(super) side: Side,
    name: String,
    /// B_r, the size of the receive buffer of every connection.
    pub(super) b_r: u64,
    pub(super) lanes: Lanes,
    pub(super) phase: Phase,
    /// The epoch that the other end's frames must carry on this link.
    pub(super) epoch: u32,
    next_tag: u32,
    next_listener: u32,
    next_id: u64,
    pub(super) connections: HashMap<ConnectionId, Connection>,
    /// The tags of all connections that are not detached.
    pub(super) tags: HashMap<Tag, ConnectionId>,
    /// Tags that this end has closed and the other end has not yet answered with ConnectionClosed.
    pub(super) closing: HashSet<Tag>,
    pub(super) listeners: HashSet<ListenerTag>,
    pub(super) events: VecDeque<Event>,
    pub(super) counters: Counters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Down,
    /// The other end's Hello has not arrived.
    Greeting {
        until: Moment,
    },
    Up {
        /// The epoch that frames to the other end carry.
        peer_epoch: u32,
    },
}

impl Channel {
    /// Makes an end without a link. `name` is this node's name, as a [`Hello`] takes it; `b_r` is the size of each
    /// connection's receive buffer in bytes, at least 1. The epoch counts up from `epoch`, which is random, so that a
    /// restarted daemon is not mistaken for the one before.
    pub fn new(side: Side, name: &str, b_r: u32, epoch: u32) -> Self {
        Self {
            side,
            name: name.to_owned(),
            b_r: b_r.max(1).into(),
            lanes: Lanes::new(1),
            phase: Phase::Down,
            epoch,
            next_tag: match side {
                Side::Io => 1,
                Side::Application => 2,
            },
            next_listener: 1,
            next_id: 1,
            connections: HashMap::new(),
            tags: HashMap::new(),
            closing: HashSet::new(),
            listeners: HashSet::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Begins a new link with this many lanes. Everything that was on an earlier link is lost.
    pub fn handle_link(&mut self, now: Moment, lanes: usize) {
        self.handle_loss();
        self.lanes = Lanes::new(lanes);
        // A Hello alone carries epoch 0.
        self.epoch = self.epoch.checked_add(1).unwrap_or(1);
        self.phase = Phase::Greeting {
            until: now + HELLO_PATIENCE,
        };
        if self.side == Side::Application {
            self.say_hello();
        }
    }

    /// Handles the loss of the link: every connection is reset with ENETRESET, at both ends, and every listener is
    /// gone.
    pub fn handle_loss(&mut self) {
        if self.phase == Phase::Down {
            return;
        }
        self.phase = Phase::Down;
        self.lanes = Lanes::new(1);
        self.tags.clear();
        self.closing.clear();
        self.listeners.clear();
        let mut ids: Vec<ConnectionId> = self.connections.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            self.lose(id, Errno::NETWORK_RESET);
        }
        self.events.push_back(Event::Down);
    }

    fn lose(&mut self, id: ConnectionId, errno: Errno) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        match connection.stage {
            Stage::Detached => {}
            Stage::Asked => {
                self.counters.refused += 1;
                self.connections.remove(&id);
                self.events.push_back(Event::NotMade { id, errno });
            }
            Stage::Offered | Stage::Open => {
                self.counters.lost += 1;
                self.detach(id, Some(errno));
            }
        }
    }

    /// Ends the part of a connection that goes over the channel; its tag must be free already.
    pub(super) fn detach(&mut self, id: ConnectionId, error: Option<Errno>) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.detach(error);
            if connection.closed {
                self.connections.remove(&id);
            } else {
                self.events.push_back(Event::Gone(id));
            }
        }
    }

    pub(super) fn say_hello(&mut self) {
        // The configuration allows no other names.
        let hello = Hello::new(self.side, self.epoch, &self.name)
            .or_else(|| Hello::new(self.side, self.epoch, "unnamed"));
        if let Some(hello) = hello {
            self.lanes.say_first(Frame::Hello(hello));
        }
    }

    /// When the link must be given up if the other end has not said Hello by then.
    pub fn next_timeout(&self) -> Option<Moment> {
        match self.phase {
            Phase::Greeting { until } => Some(until),
            _ => None,
        }
    }

    /// Whether both ends have said Hello.
    pub fn is_up(&self) -> bool {
        matches!(self.phase, Phase::Up { .. })
    }

    /// The next event, in the order in which they happened. Must be called until it returns `None`.
    pub fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The counters of all links of this channel.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The gauges at this moment. Computing them takes a look at every connection.
    pub fn gauges(&self) -> Gauges {
        let mut gauges = Gauges::default();
        for connection in self.connections.values() {
            gauges.connections += 1;
            gauges.stalled += u64::from(connection.is_stalled);
            gauges.credit = gauges.credit.saturating_add(connection.sender.room());
            gauges.buffered += connection.receiver.buffered();
            gauges.queued += connection.queued() as u64;
        }
        gauges
    }
}

/// The calls of the channel's user.
impl Channel {
    /// Asks the I/O server to listen. [`Event::Listening`] or [`Event::NotListening`] is the answer. Returns `None` if
    /// the channel is not up.
    pub fn listen(&mut self, port: u16, families: Families) -> Option<ListenerTag> {
        if !self.is_up() {
            return None;
        }
        let listener = ListenerTag(self.next_listener);
        self.next_listener = self.next_listener.wrapping_add(1);
        self.listeners.insert(listener);
        self.lanes.say_first(Frame::Listen {
            listener,
            port,
            families,
        });
        Some(listener)
    }

    /// Stops listening. Connections to this listener that are still on their way are not accepted.
    pub fn unlisten(&mut self, listener: ListenerTag) {
        if self.listeners.remove(&listener) {
            self.lanes.say_first(Frame::Unlisten { listener });
        }
    }

    /// Answers [`Event::Listen`] with the port or an error. An error may also follow a port later: then the I/O server
    /// no longer listens.
    ///
    /// # Errors
    /// Returns none. An error in `port` is sent to the application node.
    pub fn answer_listen(&mut self, listener: ListenerTag, port: Result<u16, Errno>) {
        if !self.listeners.contains(&listener) {
            return;
        }
        self.lanes.say_first(match port {
            Ok(port) => Frame::Listening { listener, port },
            Err(errno) => {
                self.listeners.remove(&listener);
                Frame::NotListening { listener, errno }
            }
        });
    }

    /// Sends the application node the complete list of ports that no program can listen on. Does nothing while the
    /// channel is not up.
    pub fn tell_taken(&mut self, ports: &[TakenPort]) {
        if self.is_up() {
            self.lanes.say_first(Frame::Taken {
                ports: ports.into(),
            });
        }
    }

    /// Asks the other end for a connection, in the direction that `way` says. [`Event::Made`] or [`Event::NotMade`] is
    /// the answer. Returns `None` if the channel is not up.
    pub fn make_connection(&mut self, way: Way) -> Option<ConnectionId> {
        if !self.is_up() {
            return None;
        }
        let tag = self.free_tag();
        // The answer says how much may be sent.
        let connection = Connection::new(tag, Stage::Asked, 0, self.b_r);
        let limit = connection.receiver.limit();
        let id = self.remember(connection);
        self.lanes
            .say(tag, Frame::MakeConnection { tag, limit, way });
        Some(id)
    }

    fn free_tag(&mut self) -> Tag {
        // The loop ends: memory is exhausted by far fewer connections than there are tags.
        loop {
            let tag = Tag(self.next_tag);
            self.next_tag = self.next_tag.wrapping_add(2);
            if !self.tags.contains_key(&tag) && !self.closing.contains(&tag) {
                return tag;
            }
        }
    }

    pub(super) fn remember(&mut self, connection: Connection) -> ConnectionId {
        let id = ConnectionId(self.next_id);
        self.next_id += 1;
        self.tags.insert(connection.tag, id);
        self.connections.insert(id, connection);
        id
    }

    /// Answers [`Event::Asked`] with yes. Returns `false` if the connection is already gone.
    pub fn accept(&mut self, id: ConnectionId, local: Endpoint) -> bool {
        let Some(connection) = self.connections.get_mut(&id) else {
            return false;
        };
        match connection.stage {
            Stage::Offered => connection.stage = Stage::Open,
            // The connection ended while it was being made, and its user will not name it again.
            Stage::Detached => {
                self.connections.remove(&id);
                return false;
            }
            Stage::Asked | Stage::Open => return false,
        }
        let (tag, limit) = (connection.tag, connection.receiver.limit());
        self.counters.made += 1;
        self.lanes
            .say(tag, Frame::ConnectionAccepted { tag, limit, local });
        true
    }

    /// Answers [`Event::Asked`] with no; `errno` is the reason.
    pub fn refuse(&mut self, id: ConnectionId, errno: Errno) {
        let Some(connection) = self.connections.remove(&id) else {
            return;
        };
        if connection.stage == Stage::Offered {
            let tag = connection.tag;
            self.tags.remove(&tag);
            self.counters.refused += 1;
            self.lanes.say(tag, Frame::Exception { tag, errno });
        }
    }

    /// How many bytes may be sent. After a 0, [`Event::Writable`] says when there is room.
    ///
    /// # Errors
    /// The error that broke the connection, reported once; EPIPE if this end has ended the connection or the other end
    /// no longer reads it.
    pub fn send_room(&mut self, id: ConnectionId) -> Result<usize, Errno> {
        let connection = self.connections.get_mut(&id);
        connection.map_or(Err(Errno::BROKEN_PIPE), Connection::send_room)
    }

    /// Sends all of these bytes, even if they exceed the room.
    ///
    /// # Errors
    /// As [`Channel::send_room`]; then nothing is sent.
    pub fn send(&mut self, id: ConnectionId, message: Bytes) -> Result<(), Errno> {
        self.send_room(id)?;
        if let Some(connection) = self.connections.get_mut(&id)
            && !message.is_empty()
        {
            connection.push(message);
        }
        self.give_turn(id);
        Ok(())
    }

    /// Ends this direction behind the bytes that are still queued.
    pub fn shutdown(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.ended = true;
            self.give_turn(id);
        }
    }

    /// Closes the connection for its user: queued bytes still go out, and bytes that arrive are thrown away. `id` is no
    /// longer valid.
    pub fn close(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        match connection.stage {
            Stage::Detached => {
                self.connections.remove(&id);
            }
            Stage::Asked | Stage::Offered => self.reset(id, Errno::ABORTED),
            Stage::Open => {
                let limit = connection.close();
                self.grant(id, limit);
                self.give_turn(id);
            }
        }
    }

    /// Ends the connection at once and sends the error to the other end. `id` is no longer valid.
    pub fn reset(&mut self, id: ConnectionId, errno: Errno) {
        let Some(connection) = self.connections.remove(&id) else {
            return;
        };
        if connection.stage != Stage::Detached {
            self.counters.resets += 1;
            self.tags.remove(&connection.tag);
            self.abort(connection.tag, errno);
        }
    }

    /// Sends Reset for a connection whose tag this end has already forgotten.
    pub(super) fn abort(&mut self, tag: Tag, errno: Errno) {
        self.closing.insert(tag);
        self.lanes.say(tag, Frame::Reset { tag, errno });
    }

    /// Takes the next bytes of the connection: at most `max`, where 0 counts as 1.
    pub fn receive(&mut self, id: ConnectionId, max: usize) -> Received {
        let Some(connection) = self.connections.get_mut(&id) else {
            return Received::End;
        };
        let (received, limit) = connection.receive(max.max(1));
        self.grant(id, limit);
        received
    }

    /// Reports L_r to the other end if `limit` holds a new one.
    pub(super) fn grant(&mut self, id: ConnectionId, limit: Option<u64>) {
        if let (Some(connection), Some(limit)) = (self.connections.get(&id), limit)
            && connection.stage == Stage::Open
            && !connection.peer_ended
        {
            let tag = connection.tag;
            self.lanes.say(tag, Frame::BufferAvailable { tag, limit });
        }
    }

    /// Whether the other end has closed the connection, or it broke.
    pub fn is_gone(&self, id: ConnectionId) -> bool {
        (self.connections.get(&id)).is_none_or(|connection| connection.stage == Stage::Detached)
    }

    /// Whether the connection broke and its user has not been told.
    pub fn is_broken(&self, id: ConnectionId) -> bool {
        (self.connections.get(&id)).is_some_and(|connection| connection.error.is_some())
    }

    /// Sets options of the connection's socket at the I/O server.
    pub fn set_options(&mut self, id: ConnectionId, options: SocketOptions) {
        if let Some(connection) = self.connections.get(&id)
            && connection.stage == Stage::Open
        {
            let tag = connection.tag;
            self.lanes.say(tag, Frame::SetOptions { tag, options });
        }
    }
}

/// The frames that go out.
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
