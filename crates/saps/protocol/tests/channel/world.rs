//! Two channels and the links between them. Each lane keeps its order, and delivers a frame when the test says so.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use baton_core::Moment;
use baton_saps_protocol::wire::{Errno, Families, Frame, ListenerTag, Side, Way};
use baton_saps_protocol::{Channel, ConnectionId, Event, Received};
use baton_wire::Endpoint;
use bytes::Bytes;

pub const B_R: u32 = 1000;
pub const LANES: usize = 3;

/// The state of a connection at one end, and what that end was told.
#[derive(Debug, Default)]
pub struct End {
    pub id: Option<ConnectionId>,
    pub sent: u64,
    pub received: u64,
    pub shut: bool,
    pub closed: bool,
    pub reset: bool,
    pub saw_end: bool,
    pub saw_error: Option<Errno>,
}

/// A connection with both its ends; the application node's comes first.
#[derive(Debug, Default)]
pub struct Pair {
    pub ends: [End; 2],
    pub refused: Option<Errno>,
}

pub struct World {
    pub now: Moment,
    pub b_r: u32,
    pub channels: [Channel; 2],
    /// The frames on the way to each side, by lane.
    wires: [Vec<VecDeque<(u32, Frame)>>; 2],
    pub pairs: Vec<Pair>,
    /// The pair that each connection of a channel belongs to: both ends know it by its peer address.
    names: BTreeMap<(usize, ConnectionId), usize>,
    pub listener: Option<ListenerTag>,
    /// Every frame that was delivered, to be replayed.
    pub delivered: Vec<(usize, u32, Frame)>,
    pub losses: u32,
}

pub fn endpoint(text: &str) -> Endpoint {
    text.parse::<SocketAddr>().unwrap().into()
}

/// The byte that this end of this connection sends at this place.
fn byte(pair: usize, side: usize, at: u64) -> u8 {
    (at * 31 + at / 256 + pair as u64 * 7 + side as u64 * 101) as u8
}

impl World {
    pub fn new(b_r: u32) -> Self {
        Self {
            now: Moment::default(),
            b_r,
            channels: [
                (Side::Application, "app1", 77),
                (Side::Io, "io1", 4_000_000),
            ]
            .map(|(side, name, epoch)| Channel::new(side, name, b_r, epoch)),
            wires: Default::default(),
            pairs: Vec::new(),
            names: BTreeMap::new(),
            listener: None,
            delivered: Vec::new(),
            losses: 0,
        }
    }

    /// Begins a link at both ends.
    pub fn link(&mut self) {
        for (channel, wires) in self.channels.iter_mut().zip(&mut self.wires) {
            *wires = vec![VecDeque::new(); LANES];
            channel.handle_link(self.now, LANES);
        }
        self.run_events();
    }

    /// Loses the link and the frames on it, at one end first.
    pub fn lose(&mut self) {
        self.losses += 1;
        self.wires = Default::default();
        for channel in &mut self.channels {
            channel.handle_loss();
        }
        self.run_events();
    }

    /// Begins a link, exchanges Hellos and opens a listener.
    pub fn open(&mut self) {
        self.link();
        self.settle_wires();
        assert!(self.channels.iter().all(Channel::is_up));
        self.listener = self.channels[0].listen(80, Families::Both);
        self.settle_wires();
    }

    /// Lets the I/O server (1) or the application node (0) make a connection.
    pub fn make(&mut self, side: usize) {
        let number = self.pairs.len();
        let port = u16::try_from(number).unwrap();
        let unique = Endpoint {
            port,
            ..endpoint("192.0.2.1:0")
        };
        let way = match (side, self.listener) {
            (1, Some(listener)) => Way::In {
                listener,
                peer: unique,
                local: endpoint("10.77.0.100:80"),
            },
            (0, _) => Way::Out {
                to: unique,
                options: Default::default(),
            },
            _ => return,
        };
        if let Some(id) = self.channels[side].make_connection(way) {
            self.pairs.push(Pair::default());
            self.names.insert((side, id), number);
        }
    }

    pub fn send(&mut self, pair: usize, side: usize, length: usize) {
        let Some(end) = self.pairs.get_mut(pair).map(|pair| &mut pair.ends[side]) else {
            return;
        };
        let Some(id) = end.id.filter(|_| !end.shut && !end.closed) else {
            return;
        };
        let Ok(room) = self.channels[side].send_room(id) else {
            return;
        };
        let length = length.min(room) as u64;
        let bytes: Vec<u8> = (end.sent..end.sent + length)
            .map(|at| byte(pair, side, at))
            .collect();
        if self.channels[side].send(id, Bytes::from(bytes)).is_ok() {
            end.sent += length;
        }
    }

    pub fn receive(&mut self, pair: usize, side: usize, max: usize) -> bool {
        let Some(end) = self.pairs.get_mut(pair).map(|pair| &mut pair.ends[side]) else {
            return false;
        };
        let Some(id) = end.id.filter(|_| !end.closed) else {
            return false;
        };
        match self.channels[side].receive(id, max) {
            Received::Data(bytes) => {
                assert!(!end.saw_end, "bytes behind the end");
                for found in bytes {
                    assert_eq!(found, byte(pair, 1 - side, end.received), "not in order");
                    end.received += 1;
                }
                true
            }
            Received::Nothing => false,
            Received::End => {
                end.saw_end = true;
                false
            }
            Received::Broken(errno) => {
                end.saw_error = Some(errno);
                true
            }
        }
    }

    pub fn shutdown(&mut self, pair: usize, side: usize) {
        self.end(pair, side, |channel, end, id| {
            end.shut = true;
            channel.shutdown(id);
        });
    }

    pub fn close(&mut self, pair: usize, side: usize) {
        self.end(pair, side, |channel, end, id| {
            end.closed = true;
            channel.close(id);
        });
    }

    pub fn reset(&mut self, pair: usize, side: usize) {
        self.end(pair, side, |channel, end, id| {
            (end.closed, end.reset) = (true, true);
            channel.reset(id, Errno::RESET);
        });
    }

    fn end(
        &mut self,
        pair: usize,
        side: usize,
        what: impl FnOnce(&mut Channel, &mut End, ConnectionId),
    ) {
        if let Some(end) = self.pairs.get_mut(pair).map(|pair| &mut pair.ends[side])
            && let Some(id) = end.id.filter(|_| !end.closed)
        {
            what(&mut self.channels[side], end, id);
        }
    }

    /// Puts the next frame of a lane on its way. Returns `false` if there is none.
    pub fn transmit(&mut self, side: usize, lane: usize) -> bool {
        let Some(frame) = self.channels[side].poll_transmit(lane) else {
            return false;
        };
        match self.wires[1 - side].get_mut(lane) {
            Some(wire) => wire.push_back(frame),
            None => panic!("sent without a link"),
        }
        self.run_events();
        true
    }

    /// Delivers the next frame of a lane. Returns `false` if there is none.
    pub fn deliver(&mut self, side: usize, lane: usize) -> bool {
        let wire = self.wires[side].get_mut(lane);
        let Some((epoch, frame)) = wire.and_then(VecDeque::pop_front) else {
            return false;
        };
        self.delivered.push((side, epoch, frame.clone()));
        let done = self.channels[side].handle_frame(epoch, frame);
        assert_eq!(done, Ok(()), "a frame of the other end is a fault");
        let buffered = self.channels[side].gauges().buffered;
        let most = u64::from(self.b_r) * self.channels[side].gauges().connections;
        assert!(buffered <= most);
        self.run_events();
        true
    }

    fn run_events(&mut self) {
        self.now = self.now + Duration::from_millis(1);
        for side in 0..2 {
            while let Some(event) = self.channels[side].poll() {
                self.handle_event(side, event);
            }
        }
    }

    fn handle_event(&mut self, side: usize, event: Event) {
        match event {
            Event::Listen { listener, port, .. } => {
                self.channels[side].answer_listen(listener, Ok(port));
            }
            Event::Asked { id, way } => {
                let (Way::In { peer, .. } | Way::Out { to: peer, .. }) = way;
                let pair = usize::from(peer.port);
                // Every fifth connection is refused.
                if pair % 5 == 4 {
                    self.channels[side].refuse(id, Errno::REFUSED);
                } else {
                    assert!(self.channels[side].accept(id, endpoint("10.77.0.100:80")));
                    self.pairs[pair].ends[side].id = Some(id);
                }
            }
            Event::Made { id, .. } => {
                let pair = self.names[&(side, id)];
                self.pairs[pair].ends[side].id = Some(id);
            }
            Event::NotMade { id, errno } => {
                let pair = self.names[&(side, id)];
                self.pairs[pair].refused = Some(errno);
            }
            _ => {}
        }
    }

    /// Sends and delivers frames until none is left.
    pub fn settle_wires(&mut self) {
        loop {
            let mut moved = false;
            for side in 0..2 {
                for lane in 0..LANES {
                    moved |= self.transmit(side, lane);
                    moved |= self.deliver(side, lane);
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// Sends, delivers and reads until nothing is left.
    pub fn settle(&mut self) {
        loop {
            self.settle_wires();
            let mut read = false;
            for pair in 0..self.pairs.len() {
                for side in 0..2 {
                    while self.receive(pair, side, 700) {
                        read = true;
                    }
                }
            }
            if !read {
                return;
            }
        }
    }
}
