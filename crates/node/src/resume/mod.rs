//! Responses whose data server died go on from another one. A task of its own on every connection server
//! and data server: on the first a walk over the entries of the dead, and what comes of each
//! (`walker`), on the second the agent that has the rest of responses (`agent`).

mod admission;
mod agent;
mod asked;
mod counts;
mod deaths;
mod heads;
mod moving;
mod told;
mod walker;
mod which;

use std::{
    collections::{BTreeSet, HashMap},
    net::{Ipv4Addr, SocketAddrV4},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use baton_abi::{LCCP_HEAD, LCCP_READY, LCCP_RESUME, LCCP_YIELD};
use baton_dataplane::{DataServer, Orphans};
use baton_net::LccpSocket;
use baton_wire::{Arrival, KeyRing, Message, NodePair, decode, encode};
use tokio::{
    sync::{mpsc, watch},
    time::sleep,
};
use tracing::debug;

use crate::{data_server::slow_path::Opinion, logging::logged, peers::heartbeat::clock_now};
use admission::Admission;
use agent::Serving;
use asked::Asked;
pub use counts::Counts;
use walker::Walker;

/// What the task needs to know of the configuration.
#[derive(Clone)]
pub struct Wanted {
    pub keys: KeyRing,
    pub clock_window: Duration,
    /// The data servers by slot, on a connection server.
    pub slots: HashMap<u16, Ipv4Addr>,
    /// The connection servers, this node not.
    pub fronts: Vec<Ipv4Addr>,
}

/// What happens to data servers, and to this node.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// Neither its daemon nor its program is heard: the others are asked for its connections.
    Dying { slot: u16 },
    /// They have had time to answer.
    Dead { slot: u16 },
    /// It is heard again.
    Alive { slot: u16 },
    /// It drains; said again and again.
    Drains { slot: u16 },
    /// It does not any more.
    Undrained { slot: u16 },
    /// This node is in front from now on, or on standby.
    Front { here: bool },
}

/// Tells the task what happens.
pub struct Resume {
    wanted: watch::Sender<Wanted>,
    fates: mpsc::UnboundedSender<Fate>,
    agents: mpsc::UnboundedSender<Serving>,
    letters: mpsc::UnboundedSender<Letter>,
    tells_heads: bool,
    services: Option<watch::Sender<baton_agent::Services>>,
    /// Who drains, as far as was told.
    pub draining: BTreeSet<u16>,
    pub counts: Arc<Counts>,
    /// Where the program finds the agent, on 127.0.0.1; 0: there is none yet.
    pub port: u16,
}

impl Resume {
    /// Starts the task; it ends with the runtime. `orphans` on a connection server only.
    pub fn start(
        own: Ipv4Addr,
        protocol: u8,
        wanted: Wanted,
        orphans: Option<Orphans>,
    ) -> Result<Self> {
        let counts = Arc::new(Counts::default());
        let (wanted_sender, wanted) = watch::channel(wanted);
        let (fates_sender, fates) = mpsc::unbounded_channel();
        let (agents_sender, agents) = mpsc::unbounded_channel();
        let (letters_sender, letters) = mpsc::unbounded_channel();
        let walker = orphans
            .map(|orphans| Walker::new(own, orphans, Arc::clone(&counts)))
            .transpose()?;
        let socket = LccpSocket::open(own, protocol)?;
        socket.hear_only(&[
            LCCP_RESUME as u8,
            LCCP_READY as u8,
            LCCP_YIELD as u8,
            LCCP_HEAD as u8,
        ])?;
        let task = Task {
            socket,
            wanted,
            fates,
            agents,
            letters,
            walker,
            serving: None,
            asked: Asked::default(),
            epoch: Instant::now(),
        };
        tokio::spawn(task.run());
        Ok(Self {
            wanted: wanted_sender,
            fates: fates_sender,
            agents: agents_sender,
            letters: letters_sender,
            tells_heads: false,
            services: None,
            draining: BTreeSet::new(),
            counts,
            port: 0,
        })
    }

    /// What the task looks after from now on.
    pub fn follow(&self, wanted: Wanted) {
        self.wanted.send_replace(wanted);
    }

    /// A data server died, or lives, or this node has become another.
    pub fn note(&self, fate: Fate) {
        // A task that has ended, has with the runtime.
        let _ = self.fates.send(fate);
    }

    /// Has the agent, which is started if there is none yet, take connections to these services, whose requests this node has an
    /// opinion of.
    pub fn serve(
        &mut self,
        services: impl IntoIterator<Item = SocketAddrV4>,
        server: &DataServer,
        opinion: Opinion,
    ) -> Result<()> {
        let services = services.into_iter().collect();
        if let Some(watch) = &self.services {
            watch.send_replace(services);
            return Ok(());
        }
        let (sender, watch) = watch::channel(services);
        let routing = baton_agent::Routing::default();
        let witness = agent::witness(server.responses()?);
        let (agent, beginnings) = baton_agent::resume::Resumer::start(&routing, watch, witness)?;
        self.port = agent.port();
        self.counts.follow(agent.counters());
        let admission = Admission {
            opinion,
            pools: server.own_pools()?,
        };
        let _ = self.agents.send(Serving::new(agent, admission, beginnings));
        self.services = Some(sender);
        Ok(())
    }

    /// Tells connection servers how responses begin, from now on.
    pub fn tell_heads(&mut self, server: &DataServer) -> Result<()> {
        if !self.tells_heads {
            let (wanted, letters) = (self.wanted.subscribe(), self.letters.clone());
            heads::tell(server.heads()?, wanted, letters, Arc::clone(&self.counts))?;
            self.tells_heads = true;
        }
        Ok(())
    }
}

struct Task {
    socket: LccpSocket,
    wanted: watch::Receiver<Wanted>,
    fates: mpsc::UnboundedReceiver<Fate>,
    agents: mpsc::UnboundedReceiver<Serving>,
    letters: mpsc::UnboundedReceiver<Letter>,
    walker: Option<Walker>,
    serving: Option<Serving>,
    asked: Asked,
    epoch: Instant,
}

/// A message that is to leave, and where to.
pub type Letter = (Ipv4Addr, Message);

/// Between two looks at what is due.
const TICK: Duration = Duration::from_millis(20);
/// The same while nothing is under way.
const IDLE: Duration = Duration::from_millis(500);

impl Task {
    async fn run(mut self) {
        let mut buffer = vec![0; LccpSocket::MAX_PACKET];
        loop {
            let idle = self.walker.as_ref().is_none_or(Walker::is_idle);
            let mut letters = Vec::new();
            tokio::select! {
                received = self.socket.recv_from(&mut buffer) => match received {
                    Ok(received) => {
                        let (sender, payload) = (received.sender, received.payload.to_vec());
                        let came = received.came();
                        self.handle(sender, &payload, came);
                    }
                    Err(error) => debug!("{error}"),
                },
                fate = self.fates.recv() => {
                    // The daemon has ended.
                    let Some(fate) = fate else { return };
                    if let Some(walker) = &mut self.walker {
                        let wanted = self.wanted.borrow();
                        logged(walker.handle_fate(self.epoch, fate, &wanted.slots));
                    }
                }
                Some(serving) = self.agents.recv() => self.serving = Some(serving),
                Some(letter) = next_letter(&mut self.serving) => letters.push(letter),
                Some(letter) = self.letters.recv() => letters.push(letter),
                () = sleep(if idle { IDLE } else { TICK }) => {}
            }
            if let Some(walker) = &mut self.walker {
                letters.extend(walker.work(self.epoch, &self.wanted.borrow().slots));
            }
            let parcels = match &mut self.walker {
                Some(walker) => walker.take_parcels(),
                None => Vec::new(),
            };
            let bare = letters
                .into_iter()
                .map(|(to, message)| (to, message, Vec::new()));
            let keys = self.wanted.borrow().keys.clone();
            for (to, message, packet) in bare.chain(parcels) {
                self.asked.note(to, &message);
                let pair = NodePair {
                    from: self.socket.own(),
                    to,
                };
                let bytes = encode(&message, &packet, clock_now(), &keys.with(to).current, pair);
                if let Err(error) = self.socket.send_to(&bytes, to).await {
                    debug!("{error}");
                }
            }
        }
    }

    fn handle(&mut self, sender: Ipv4Addr, payload: &[u8], came: Arrival) {
        let (keys, window) = {
            let wanted = self.wanted.borrow();
            (wanted.keys.with(sender), wanted.clock_window)
        };
        // The daemon counts what is wrong: it hears everything as well.
        let pair = NodePair {
            from: sender,
            to: self.socket.own(),
        };
        let Ok(received) = decode(payload, pair, &keys, came, window) else {
            return;
        };
        if !self.asked.expects(sender, &received.message) {
            return debug!(%sender, "an answer of a node that was not asked");
        }
        match received.message {
            Message::Resume(order) => {
                if let Some(serving) = &mut self.serving {
                    serving.handle(sender, &order);
                }
            }
            Message::Ready(ready) => {
                if let Some(walker) = &mut self.walker {
                    walker.handle_ready(self.epoch, &ready);
                }
            }
            Message::Yielded { flow, answer } => {
                if let Some(walker) = &mut self.walker {
                    logged(walker.handle_yielded(self.epoch, flow, answer));
                }
            }
            Message::Heads(heads) => {
                if let Some(walker) = &mut self.walker {
                    logged(walker.hear_heads(sender, &heads, &self.wanted.borrow().slots));
                }
            }
            _ => {}
        }
    }
}

/// Never, if there is no agent.
async fn next_letter(serving: &mut Option<Serving>) -> Option<Letter> {
    match serving {
        Some(serving) => serving.next().await,
        None => std::future::pending().await,
    }
}
