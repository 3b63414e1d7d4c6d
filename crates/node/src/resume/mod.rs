//! Responses whose data server died go on from another one. Every connection server and data server runs a task for
//! this. On a connection server the task walks over the entries of the dead data server and decides what becomes of
//! each (`walker`). On a data server it runs the agent that gives the rest of responses (`agent`).

mod admission;
mod agent;
mod counts;
mod deaths;
mod expected_answers;
mod heads;
mod mid_response;
mod response_heads;
mod response_id;
mod walker;

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
use baton_wire::{Arrival, KeyRing, Message};
use tokio::{
    sync::{mpsc, watch},
    time::sleep,
};
use tracing::debug;

use crate::{data_server::current_rules::RuleReader, logging::logged, peers::sealing};
use admission::Admission;
use agent::Serving;
pub use counts::Counts;
use expected_answers::ExpectedAnswers;
use walker::Walker;

/// What the task needs to know of the configuration.
#[derive(Clone)]
pub struct Wanted {
    pub keys: KeyRing,
    pub clock_window: Duration,
    /// The addresses of the data servers by slot. Only connection servers use it.
    pub slots: HashMap<u16, Ipv4Addr>,
    /// The connection servers other than this node.
    pub fronts: Vec<Ipv4Addr>,
}

/// An event about a data server or about this node.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// Neither the daemon nor the program of this data server is heard. The others are asked for its connections.
    Dying { slot: u16 },
    /// The data server is dead, and the others have had time to answer for its connections.
    Dead { slot: u16 },
    /// The data server is heard again.
    Alive { slot: u16 },
    /// The data server drains. This is repeated for as long as it does.
    Drains { slot: u16 },
    /// The data server no longer drains.
    Undrained { slot: u16 },
    /// This node is in front from now on (`here`), or on standby.
    Front { here: bool },
}

/// The daemon's handle to the task: tells it what happens and what to serve.
pub struct Resume {
    wanted: watch::Sender<Wanted>,
    fates: mpsc::UnboundedSender<Fate>,
    agents: mpsc::UnboundedSender<Serving>,
    outgoing: mpsc::UnboundedSender<Outgoing>,
    tells_heads: bool,
    services: Option<watch::Sender<baton_agent::Services>>,
    /// The slots of the data servers that drain, as the task was last told.
    pub draining: BTreeSet<u16>,
    pub counts: Arc<Counts>,
    /// The port on 127.0.0.1 at which the program finds the agent; 0 if there is no agent yet.
    pub port: u16,
}

impl Resume {
    /// Starts the task, which ends with the runtime. Only connection servers pass `orphans`.
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
        let (outgoing_sender, outgoing) = mpsc::unbounded_channel();
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
            outgoing,
            walker,
            serving: None,
            expected: ExpectedAnswers::default(),
            epoch: Instant::now(),
        };
        tokio::spawn(task.run());
        Ok(Self {
            wanted: wanted_sender,
            fates: fates_sender,
            agents: agents_sender,
            outgoing: outgoing_sender,
            tells_heads: false,
            services: None,
            draining: BTreeSet::new(),
            counts,
            port: 0,
        })
    }

    /// Gives the task a new configuration.
    pub fn follow(&self, wanted: Wanted) {
        self.wanted.send_replace(wanted);
    }

    /// Tells the task what happened to a data server or to this node.
    pub fn note(&self, fate: Fate) {
        // Sending fails only if the runtime, and the task with it, has ended.
        let _ = self.fates.send(fate);
    }

    /// Has the agent take connections to these services, and starts the agent if there is none yet. `rules` judge
    /// whether this node may answer their requests.
    pub fn serve(
        &mut self,
        services: impl IntoIterator<Item = SocketAddrV4>,
        server: &DataServer,
        rules: RuleReader,
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
            rules,
            pools: server.own_pools()?,
        };
        let _ = self.agents.send(Serving::new(agent, admission, beginnings));
        self.services = Some(sender);
        Ok(())
    }

    /// Begins to tell connection servers how this node's responses begin. Later calls do nothing.
    pub fn tell_heads(&mut self, server: &DataServer) -> Result<()> {
        if !self.tells_heads {
            let (wanted, outgoing) = (self.wanted.subscribe(), self.outgoing.clone());
            heads::tell(server.heads()?, wanted, outgoing, Arc::clone(&self.counts))?;
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
    outgoing: mpsc::UnboundedReceiver<Outgoing>,
    walker: Option<Walker>,
    serving: Option<Serving>,
    expected: ExpectedAnswers,
    epoch: Instant,
}

/// A message that is to be sent.
pub struct Outgoing {
    /// The node that the message goes to.
    pub to: Ipv4Addr,
    pub message: Message,
    /// The packet in the message; empty if there is none.
    pub packet: Vec<u8>,
}

impl Outgoing {
    /// A message without a packet.
    pub fn bare(to: Ipv4Addr, message: Message) -> Self {
        Self {
            to,
            message,
            packet: Vec::new(),
        }
    }
}

/// The longest time between two looks at what is due.
const TICK: Duration = Duration::from_millis(20);
/// The longest time between two looks while nothing is under way.
const IDLE: Duration = Duration::from_millis(500);

impl Task {
    async fn run(mut self) {
        let mut buffer = vec![0; LccpSocket::MAX_PACKET];
        loop {
            let idle = self.walker.as_ref().is_none_or(Walker::is_idle);
            let mut outgoing = Vec::new();
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
                    // Without a sender the daemon has ended.
                    let Some(fate) = fate else { return };
                    if let Some(walker) = &mut self.walker {
                        let wanted = self.wanted.borrow();
                        logged(walker.handle_fate(self.epoch, fate, &wanted.slots));
                    }
                }
                Some(serving) = self.agents.recv() => self.serving = Some(serving),
                Some(answer) = next_answer(&mut self.serving) => outgoing.push(answer),
                Some(heads) = self.outgoing.recv() => outgoing.push(heads),
                () = sleep(if idle { IDLE } else { TICK }) => {}
            }
            if let Some(walker) = &mut self.walker {
                outgoing.extend(walker.work(self.epoch, &self.wanted.borrow().slots));
            }
            let keys = self.wanted.borrow().keys.clone();
            for Outgoing {
                to,
                message,
                packet,
            } in outgoing
            {
                self.expected.note(to, &message);
                sealing::say(&self.socket, &keys, to, &message, &packet).await;
            }
        }
    }

    fn handle(&mut self, sender: Ipv4Addr, payload: &[u8], came: Arrival) {
        let (keys, window) = {
            let wanted = self.wanted.borrow();
            (wanted.keys.clone(), wanted.clock_window)
        };
        // The daemon hears every message too, and counts those that are rejected.
        let own = self.socket.own();
        let Ok(received) = sealing::open(own, &keys, window, sender, payload, came) else {
            return;
        };
        if !self.expected.expects(sender, &received.message) {
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

/// Waits for the agent's next answer; never returns if there is no agent.
async fn next_answer(serving: &mut Option<Serving>) -> Option<Outgoing> {
    match serving {
        Some(serving) => serving.next().await,
        None => std::future::pending().await,
    }
}
