//! Retransmission of messages that were lost between nodes: losses are noticed by the numbers, and the messages are
//! asked for and sent again. This is a task of its own, because milliseconds count and the daemon may be busy.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anyhow::Result;
use baton_abi::{
    COUNTER_LCCP_MISSED, COUNTER_LCCP_SENT_AGAIN, LCCP_RESEND, LCCP_SYNC, ReceiveWindow,
};
use baton_config::Config;
use baton_core::{
    Moment,
    channel::{IDLE_TICK, Pace, Receiver, Sender, TICK},
};
use baton_dataplane::Channels;
use baton_net::{LccpSocket, Link};
use baton_wire::{Arrival, KeyRing, Message, Numbers};
use tokio::{sync::watch, time::sleep};
use tracing::{debug, warn};

use super::{heartbeat::clock_now, sealing};
use crate::{logging::logged, network::egress::Egress};

/// What the task needs to know of the configuration.
pub struct Wanted {
    keys: KeyRing,
    clock_window: Duration,
    /// How old a message may be that is sent again. Others take a data server that was cut off for longer for dead, and
    /// an old message must not make it adopt a connection that has another owner by then. The client has sent the
    /// packet again long before.
    oldest: Duration,
    /// The other nodes, and the channel to each.
    channels: Vec<(Ipv4Addr, u16)>,
}

impl Wanted {
    /// What this configuration says. `channels` are the other nodes, each with the channel to it.
    pub fn new(config: &Config, keys: KeyRing, channels: Vec<(Ipv4Addr, u16)>) -> Self {
        Self {
            keys,
            clock_window: config.cluster.clock_window,
            oldest: config.cs.dead_after / 2,
            channels,
        }
    }
}

/// Counters of what the task has done.
#[derive(Default)]
struct Counts {
    missed: AtomicU64,
    sent_again: AtomicU64,
}

/// The handle to the task, which ends when this is dropped.
pub struct Retransmission {
    wanted: watch::Sender<Wanted>,
    counts: Arc<Counts>,
}

impl Retransmission {
    /// Starts the task.
    pub fn start(
        own: Ipv4Addr,
        protocol: u8,
        links: &[Link],
        maps: Channels,
        wanted: Wanted,
    ) -> Result<Self> {
        let counts = Arc::new(Counts::default());
        let (wanted, changes) = watch::channel(wanted);
        let socket = LccpSocket::open(own, protocol)?;
        socket.hear_only(&[LCCP_SYNC as u8, LCCP_RESEND as u8])?;
        let task = Task {
            socket,
            frames: Egress::open(links)?,
            maps,
            wanted: changes,
            epoch: Instant::now(),
            nodes: BTreeMap::new(),
            pace: Pace::default(),
            counts: Arc::clone(&counts),
        };
        tokio::spawn(task.run());
        Ok(Self { wanted, counts })
    }

    /// Tells the task what it is to look after from now on.
    pub fn follow(&self, wanted: Wanted) {
        self.wanted.send_replace(wanted);
    }

    /// What the task has done, each number with its counter of `bpf/abi/counters.h`.
    pub fn counts(&self) -> [(u32, u64); 2] {
        [
            (COUNTER_LCCP_MISSED, self.counts.missed.load(Relaxed)),
            (
                COUNTER_LCCP_SENT_AGAIN,
                self.counts.sent_again.load(Relaxed),
            ),
        ]
    }
}

struct Task {
    socket: LccpSocket,
    frames: Egress,
    maps: Channels,
    wanted: watch::Receiver<Wanted>,
    epoch: Instant,
    nodes: BTreeMap<Ipv4Addr, Node>,
    pace: Pace,
    counts: Arc<Counts>,
}

/// What the task knows of both directions between this node and another one.
#[derive(Default)]
struct Node {
    channel: u16,
    next: u16,
    sender: Sender,
    receive_window: ReceiveWindow,
    receiver: Receiver,
}

impl Task {
    async fn run(mut self) {
        let mut buffer = vec![0; LccpSocket::MAX_PACKET];
        let mut until_look = TICK;
        let mut looked = Instant::now();
        self.take_up();
        loop {
            tokio::select! {
                received = self.socket.recv_from(&mut buffer) => match received {
                    Ok(received) => {
                        let (sender, payload) = (received.sender, received.payload.to_vec());
                        let came = received.came();
                        logged(self.handle(sender, &payload, came).await);
                    }
                    Err(error) => debug!("{error}"),
                },
                changed = self.wanted.changed() => match changed {
                    Ok(()) => self.take_up(),
                    // The daemon has ended.
                    Err(_) => return,
                },
                () = sleep(until_look.saturating_sub(looked.elapsed())) => {
                    looked = Instant::now();
                    until_look = self.look_at_all().await;
                }
            }
        }
    }

    /// Takes up the nodes of the configuration. What is known of nodes that stay is kept.
    fn take_up(&mut self) {
        let channels = self.wanted.borrow_and_update().channels.clone();
        let mut before = std::mem::take(&mut self.nodes);
        for (address, channel) in channels {
            let mut node = before.remove(&address).unwrap_or_default();
            node.channel = channel;
            // Any number will do that this node is not likely to have used before its restart.
            let first = (clock_now().as_nanos() >> 10) as u16 | 1;
            logged(self.maps.begin_at(channel, first).map_err(Into::into));
            logged(self.maps.make_receive_window(address).map_err(Into::into));
            self.nodes.insert(address, node);
        }
    }

    /// Looks at the channels to and from all nodes, and asks for what is missing. Returns the time until the next look.
    async fn look_at_all(&mut self) -> Duration {
        let now = Moment::after_epoch(self.epoch.elapsed());
        let end = self.nodes.values().map(|node| node.channel + 1).max();
        let next = match self.maps.all_next(end.unwrap_or(0)) {
            Ok(next) => next,
            Err(error) => {
                warn!("{error}");
                return IDLE_TICK;
            }
        };
        let mut moved = false;
        let mut messages = Vec::new();
        for (address, node) in &mut self.nodes {
            // A pure connection server has no receive windows, because nobody gives it connections.
            let receive_window = match self.maps.receive_window(*address) {
                Ok(receive_window) => receive_window.unwrap_or_default(),
                Err(error) => {
                    warn!("{error}");
                    continue;
                }
            };
            let next = next.get(usize::from(node.channel)).copied().unwrap_or(0);
            let found = node.look(now, next, receive_window);
            moved |= found.moved;
            let asked = Numbers::lists(&found.lost).into_iter().map(Message::Resend);
            let sync = found.last.map(|last| Message::Sync { last });
            messages.extend(asked.chain(sync).map(|message| (*address, message)));
            self.counts
                .missed
                .fetch_add(found.lost.len() as u64, Relaxed);
        }
        for (to, message) in messages {
            self.say(&message, to).await;
        }
        self.pace.after_look(now, moved)
    }

    async fn handle(&mut self, sender: Ipv4Addr, payload: &[u8], came: Arrival) -> Result<()> {
        let (keys, window) = {
            let wanted = self.wanted.borrow();
            (wanted.keys.clone(), wanted.clock_window)
        };
        let Some(node) = self.nodes.get_mut(&sender) else {
            return Ok(());
        };
        // The daemon receives these messages too, and counts those that cannot be decoded.
        let received = sealing::open(self.socket.own(), &keys, window, sender, payload, came);
        match received.map(|received| received.message) {
            Ok(Message::Sync { last }) => {
                let came = self.maps.receive_window(sender)?.unwrap_or_default();
                let lost = node.receiver.sync(&came.came, last);
                self.counts.missed.fetch_add(lost.len() as u64, Relaxed);
                for numbers in Numbers::lists(&lost) {
                    self.say(&Message::Resend(numbers), sender).await;
                }
            }
            Ok(Message::Resend(numbers)) => {
                let oldest = self.wanted.borrow().oldest;
                for number in numbers.get() {
                    let sent = self.maps.sent_message(node.channel, *number, oldest)?;
                    if let Some((interface, frame)) = sent {
                        self.frames.send_by(interface, &frame)?;
                        self.counts.sent_again.fetch_add(1, Relaxed);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    async fn say(&self, message: &Message, to: Ipv4Addr) {
        let keys = self.wanted.borrow().keys.clone();
        sealing::say(&self.socket, &keys, to, message, &[]).await;
    }
}

/// What a look at the channels to and from a node found.
struct Found {
    moved: bool,
    lost: Vec<u16>,
    /// The last number sent, if the node is to be told it (SYNC).
    last: Option<u16>,
}

impl Node {
    fn look(&mut self, now: Moment, next: u16, receive_window: ReceiveWindow) -> Found {
        let came = receive_window != self.receive_window;
        let moved = came || next != self.next;
        (self.next, self.receive_window) = (next, receive_window);
        Found {
            moved,
            lost: if came || !self.receiver.rests() {
                self.receiver.look(&receive_window.came)
            } else {
                Vec::new()
            },
            last: self.sender.look(now, next),
        }
    }
}
