//! A channel, as one end sees it: what its user does with it, and what goes out.

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

/// How long the other end has for its Hello.
pub const HELLO_PATIENCE: Duration = Duration::from_secs(5);

/// One end of a channel. It outlives the links that carry it: what was on a lost one is gone, at both ends.
#[derive(Debug)]
pub struct Channel {
    pub(super) side: Side,
    name: String,
    /// B_r of every connection.
    pub(super) b_r: u64,
    pub(super) lanes: Lanes,
    pub(super) phase: Phase,
    /// What the other end's frames carry on this link.
    pub(super) epoch: u32,
    next_tag: u32,
    next_listener: u32,
    next_id: u64,
    pub(super) connections: HashMap<ConnectionId, Connection>,
    /// Of all connections that are not detached.
    pub(super) tags: HashMap<Tag, ConnectionId>,
    /// Tags that we have closed, until the other end has said that it knows.
    pub(super) closing: HashSet<Tag>,
    pub(super) listeners: HashSet<ListenerTag>,
    pub(super) events: VecDeque<Event>,
    pub(super) counters: Counters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Down,
    /// The other end's Hello has not come.
    Greeting {
        until: Moment,
    },
    Up {
        /// What our frames carry.
        peer_epoch: u32,
    },
}

impl Channel {
    /// An end without a link. `name` is this node's, as a [`Hello`] takes it; `b_r` is the size of each
    /// connection's receive buffer in bytes, at least 1. The epoch counts up from `epoch`, which is random, so that a
    /// daemon that was restarted is not taken for the one before.
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

    /// There is a link, with so many lanes. What was on one before is lost.
    pub fn handle_link(&mut self, now: Moment, lanes: usize) {
        self.handle_loss();
        self.lanes = Lanes::new(lanes);
        // 0 is in a Hello only.
        self.epoch = self.epoch.checked_add(1).unwrap_or(1);
        self.phase = Phase::Greeting {
            until: now + HELLO_PATIENCE,
        };
        if self.side == Side::Application {
            self.say_hello();
        }
    }

    /// The link is lost: every connection is reset with ENETRESET, at both ends, and every listener is gone.
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

    /// When [`Channel::is_overdue`] is to be asked.
    pub fn next_timeout(&self) -> Option<Moment> {
        match self.phase {
            Phase::Greeting { until } => Some(until),
            _ => None,
        }
    }

    /// Whether the other end has not said Hello in time: the link is to be given up.
    pub fn is_overdue(&self, now: Moment) -> bool {
        self.next_timeout().is_some_and(|until| now >= until)
    }

    /// Whether both ends have said Hello.
    pub fn is_up(&self) -> bool {
        matches!(self.phase, Phase::Up { .. })
    }

    /// What happened, in order; to be called until there is nothing.
    pub fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What it has done.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// How it stands; looks at every connection.
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

/// What users do.
impl Channel {
    /// Asks the I/O server to listen. Events Listening or NotListening answer. `None`: the channel is not up.
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

    /// Listens no longer; of what is on its way here nothing is accepted.
    pub fn unlisten(&mut self, listener: ListenerTag) {
        if self.listeners.remove(&listener) {
            self.lanes.say_first(Frame::Unlisten { listener });
        }
    }

    /// Answers [`Event::Listen`] with the port; later an error says that it is over.
    ///
    /// # Errors
    /// None of its own: what is an error here is told to the application node.
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

    /// Tells the application node which ports nobody can listen on, all that there are now. Does nothing while the
    /// channel is not up.
    pub fn tell_taken(&mut self, ports: &[TakenPort]) {
        if self.is_up() {
            self.lanes.say_first(Frame::Taken {
                ports: ports.into(),
            });
        }
    }

    /// Asks for a connection: the I/O server one way, the application node the other. Events Made or NotMade
    /// answer. `None`: the channel is not up.
    pub fn make_connection(&mut self, way: Way) -> Option<ConnectionId> {
        if !self.is_up() {
            return None;
        }
        let tag = self.free_tag();
        // How much may be sent is in the answer.
        let connection = Connection::new(tag, Stage::Asked, 0, self.b_r);
        let limit = connection.receiver.limit();
        let id = self.remember(connection);
        self.lanes
            .say(tag, Frame::MakeConnection { tag, limit, way });
        Some(id)
    }

    fn free_tag(&mut self) -> Tag {
        // Ends: there is memory for far fewer connections than there are tags.
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

    /// Answers [`Event::Asked`]. `false`: it is gone already.
    pub fn accept(&mut self, id: ConnectionId, local: Endpoint) -> bool {
        let Some(connection) = self.connections.get_mut(&id) else {
            return false;
        };
        match connection.stage {
            Stage::Offered => connection.stage = Stage::Open,
            // Ended while it was being made; nobody will ask for it any more.
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

    /// Answers [`Event::Asked`] with no.
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

    /// How many bytes may be sent; 0: not now, Writable will say when.
    ///
    /// # Errors
    /// What broke the connection, once; EPIPE once its end was sent, or nobody reads it.
    pub fn send_room(&mut self, id: ConnectionId) -> Result<usize, Errno> {
        let connection = self.connections.get_mut(&id);
        connection.map_or(Err(Errno::BROKEN_PIPE), Connection::send_room)
    }

    /// Sends bytes, all of them, also beyond what there is room for.
    ///
    /// # Errors
    /// As [`Channel::send_room`]; then none is sent.
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

    /// Sends no more, once what was sent is gone.
    pub fn shutdown(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.ended = true;
            self.give_turn(id);
        }
    }

    /// The user is done: what was sent still goes out, what comes is thrown away. The name means nothing any more.
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

    /// Ends it at once; the other end hears of the error. The name means nothing any more.
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

    /// Tells the other end that a connection is over, whose tag this side knows no more.
    pub(super) fn abort(&mut self, tag: Tag, errno: Errno) {
        self.closing.insert(tag);
        self.lanes.say(tag, Frame::Reset { tag, errno });
    }

    /// The next bytes, at most `max`, at least 1.
    pub fn receive(&mut self, id: ConnectionId, max: usize) -> Received {
        let Some(connection) = self.connections.get_mut(&id) else {
            return Received::End;
        };
        let (received, limit) = connection.receive(max.max(1));
        self.grant(id, limit);
        received
    }

    /// Tells the other end L_r, if there is more than it knows of.
    pub(super) fn grant(&mut self, id: ConnectionId, limit: Option<u64>) {
        if let (Some(connection), Some(limit)) = (self.connections.get(&id), limit)
            && connection.stage == Stage::Open
            && !connection.peer_ended
        {
            let tag = connection.tag;
            self.lanes.say(tag, Frame::BufferAvailable { tag, limit });
        }
    }

    /// Takes the error that the next call would report.
    pub fn take_error(&mut self, id: ConnectionId) -> Option<Errno> {
        self.connections.get_mut(&id)?.error.take()
    }

    /// Whether the other end has closed it, or it broke.
    pub fn is_gone(&self, id: ConnectionId) -> bool {
        (self.connections.get(&id)).is_none_or(|connection| connection.stage == Stage::Detached)
    }

    /// Whether it broke, which nobody has been told yet.
    pub fn is_broken(&self, id: ConnectionId) -> bool {
        (self.connections.get(&id)).is_some_and(|connection| connection.error.is_some())
    }

    /// Sets options of the socket at the I/O server.
    pub fn set_options(&mut self, id: ConnectionId, options: SocketOptions) {
        if let Some(connection) = self.connections.get(&id)
            && connection.stage == Stage::Open
        {
            let tag = connection.tag;
            self.lanes.say(tag, Frame::SetOptions { tag, options });
        }
    }
}

/// What goes out.
impl Channel {
    /// The next frame for a lane and the epoch that it carries. `None`: nothing for now.
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

    /// Whether [`Channel::poll_transmit`] may have something for a lane.
    pub fn wants_to_send(&mut self, lane: usize) -> bool {
        let lane = self.lanes.lane(lane);
        lane.is_some_and(|lane| !lane.is_empty())
    }

    /// How many lanes the link has.
    pub fn lanes(&self) -> usize {
        self.lanes.count()
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

    /// A turn for a connection that can send, if it waits for none yet.
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
