//! The I/O server, which has the cluster addresses and the TCP connections of all clients. Programs run on application
//! nodes.

mod clients;
mod nodes;
mod outgoing;
mod pump;
mod state;
mod taken;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use baton_core::counters::count;
use baton_saps_protocol::wire::{Errno, Side, TakenPort, Way};
use baton_saps_protocol::{Counters, Event, PortPolicy};
use tokio::task::JoinSet;

use self::nodes::Nodes;
use self::state::IoState;
pub use self::state::{IoCounters, IoSettings};
use crate::events::Events;
use crate::network::{Acceptor, Handshake, Link, network};
use crate::shared::{Shared, error};
use crate::{ChannelReport, link};

/// The time between two looks at what other programs of this host listen on.
const LOOK: Duration = Duration::from_secs(1);

/// A running I/O server. Dropping it ends it and resets its clients.
#[derive(Debug)]
pub struct IoServer {
    state: Arc<IoState>,
    local: SocketAddr,
    _tasks: JoinSet<()>,
}

/// The state of an I/O server.
#[derive(Clone, Debug)]
pub struct IoReport {
    /// The application nodes whose channels are up.
    pub nodes: Vec<ChannelReport>,
    /// Each port that is listened on, whether it is on IPv6, and for how many nodes.
    pub ports: Vec<(u16, bool, usize)>,
    /// The ports that no node can have, because other programs of this host have them.
    pub taken: Vec<TakenPort>,
    /// Counters of connections, which go on counting.
    pub counters: Arc<IoCounters>,
    /// Counters of all channels since the start, including those that are up.
    pub channels: Counters,
}

impl IoServer {
    /// Accepts channels from this point on. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// An error if the network cannot be set up, or the port for the channels is not available.
    pub fn start(settings: IoSettings) -> io::Result<Self> {
        let (key, previous) = (&settings.key, settings.previous_key.as_ref());
        let network = network(settings.network, key, previous)?;
        let acceptor = network.listen(settings.listen)?;
        let local = acceptor.local()?;
        let nodes = Nodes::new(settings.policy, settings.weights.clone());
        let state = Arc::new(IoState {
            settings,
            nodes,
            counters: Arc::default(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept_nodes(Arc::clone(&state), acceptor));
        tasks.spawn(watch_taken(Arc::clone(&state)));
        Ok(Self {
            state,
            local,
            _tasks: tasks,
        })
    }

    /// Sets another policy, and other weights by the nodes' names, from the next client on.
    pub fn set_policy(&self, policy: PortPolicy, weights: BTreeMap<String, u8>) {
        self.state.nodes.set_policy(policy, weights);
    }

    /// The address that application nodes connect to.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// The state of the I/O server.
    pub fn report(&self) -> IoReport {
        let (nodes, ports, channels) = self.state.nodes.report();
        IoReport {
            nodes,
            ports,
            taken: self.state.nodes.taken(),
            counters: Arc::clone(&self.state.counters),
            channels,
        }
    }
}

async fn watch_taken(io: Arc<IoState>) {
    loop {
        io.look_at_taken();
        tokio::time::sleep(LOOK).await;
    }
}

async fn accept_nodes(io: Arc<IoState>, mut acceptor: Box<dyn Acceptor>) {
    // When this task ends, every node's channel ends with it, and so do the connections.
    let mut nodes = JoinSet::new();
    loop {
        match acceptor.accept().await {
            Ok(handshake) => {
                nodes.spawn(serve_node(Arc::clone(&io), handshake));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a channel");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        while nodes.try_join_next().is_some() {}
    }
}

async fn serve_node(io: Arc<IoState>, handshake: Handshake) {
    let link = match handshake.await {
        Ok(link) => link,
        Err(error) => {
            count(&io.counters.channels_refused);
            tracing::warn!(%error, "a channel was refused");
            return;
        }
    };
    let Link { peer, .. } = link;
    let (name, buffer) = (&io.settings.node, io.settings.buffer);
    let (shared, events) = Shared::new(Side::Io, name, buffer);
    let node = io.nodes.reserve(peer, &shared);
    // The node's listeners are removed with this task, however it ends.
    let _guard = nodes::Guard::new(&io.nodes, node);
    tokio::select! {
        error = link::run(&shared, link, || {}) => {
            tracing::warn!(%peer, %error, "the channel to an application node is lost");
        }
        () = watch_events(&io, node, &shared, events) => {}
    }
}

async fn watch_events(io: &Arc<IoState>, node: u64, shared: &Arc<Shared>, mut events: Events) {
    // The tasks that make connections for programs end with the node's channel.
    let mut outgoing = JoinSet::new();
    while let Some(event) = events.recv().await {
        match event {
            Event::Up { name } => {
                tracing::info!(name, "the channel to an application node is up");
                io.nodes.name(node, name);
                io.look_at_taken();
                let taken = io.nodes.taken();
                shared.with(|state| state.channel.tell_taken(&taken));
            }
            Event::Listen {
                listener,
                port,
                families,
            } => {
                let listening = clients::listen(io, (node, listener), port, families);
                if let Err(errno) = listening {
                    count(&io.counters.listens_refused);
                    let error = error(errno);
                    tracing::warn!(port, ?families, %error, "cannot listen on this port for an application node");
                    // The nodes get the list before this answer, so that the next program is refused at once.
                    io.look_at_taken();
                }
                shared.with(|state| state.channel.answer_listen(listener, listening));
            }
            Event::Unlisten { listener } => {
                io.nodes.unlisten(|known| *known == (node, listener));
            }
            Event::Asked {
                id,
                way: Way::Out { to, options },
            } => {
                let connecting =
                    outgoing::connect(Arc::clone(io), Arc::clone(shared), id, to.into(), options);
                outgoing.spawn(connecting);
            }
            Event::Asked { id, .. } => {
                shared.with(|state| state.channel.refuse(id, Errno::PROTOCOL));
            }
            _ => {}
        }
        while outgoing.try_join_next().is_some() {}
    }
}
