//! One end of a channel, from one link to the next.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use crate::wire::{Errno, Frame, Hello, ListenerTag, Side, Tag};

use super::connection::{Connection, Stage};
use super::lanes::Lanes;
use super::{ConnectionId, Counters, Event, Gauges};
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
    pub(super) next_tag: u32,
    pub(super) next_listener: u32,
    pub(super) next_id: u64,
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
