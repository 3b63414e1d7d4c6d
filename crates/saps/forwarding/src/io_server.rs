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
    inner: Arc<IoState>,
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
        let inner = Arc::new(IoState {
            settings,
            nodes,
            counters: Arc::default(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept_nodes(Arc::clone(&inner), acceptor));
        tasks.spawn(watch_taken(Arc::clone(&inner)));
        Ok(Self {
            inner,
            local,
            _tasks: tasks,
        })
    }

    /// Sets another policy, and other weights by the nodes' names, from the next client on.
    pub fn set_policy(&self, policy: PortPolicy, weights: BTreeMap<String, u8>) {
        self.inner.nodes.set_policy(policy, weights);
    }

    /// The address that application nodes connect to.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// The state of the I/O server.
    pub fn report(&self) -> IoReport {
        let (nodes, ports, channels) = self.inner.nodes.report();
        IoReport {
            nodes,
            ports,
            taken: self.inner.nodes.taken(),
            counters: Arc::clone(&self.inner.counters),
            channels,
        }
    }
}

impl IoState {
    /// Tells the nodes which ports other programs of this host have, if the list has changed.
    fn look_at_taken(&self) {
        let before = self.nodes.sockets();
        let listeners = match baton_net::listeners::listeners() {
            Ok(listeners) => listeners,
            // Without the list, a node learns that a port is taken when it asks for it.
            Err(error) => {
                return tracing::debug!(%error, "cannot list the listening sockets of this host");
            }
        };
        let addresses = &self.settings.cluster_addresses;
        let after = self.nodes.sockets();
        // A socket of ours that was opened or closed meanwhile must not count as another program's.
        let is_ours = |address| before.contains(&address) || after.contains(&address);
        let taken = taken::taken(&listeners, addresses, is_ours);
        for TakenPort { port, families } in self.nodes.set_taken(taken) {
            tracing::info!(
                port,
                ?families,
                "another program on this host uses this port: programs on application nodes cannot listen on it"
            );
        }
    }
}

async fn watch_taken(inner: Arc<IoState>) {
    loop {
        inner.look_at_taken();
        tokio::time::sleep(LOOK).await;
    }
}

async fn accept_nodes(inner: Arc<IoState>, mut acceptor: Box<dyn Acceptor>) {
    // When this task ends, every node's channel ends with it, and so do the connections.
    let mut nodes = JoinSet::new();
    loop {
        match acceptor.accept().await {
            Ok(handshake) => {
                nodes.spawn(serve_node(Arc::clone(&inner), handshake));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a channel");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        while nodes.try_join_next().is_some() {}
    }
}

async fn serve_node(inner: Arc<IoState>, handshake: Handshake) {
    let link = match handshake.await {
        Ok(link) => link,
        Err(error) => {
            count(&inner.counters.channels_refused);
            tracing::warn!(%error, "a channel was refused");
            return;
        }
    };
    let Link { peer, .. } = link;
    let (name, buffer) = (&inner.settings.node, inner.settings.buffer);
    let (shared, events) = Shared::new(Side::Io, name, buffer);
    let node = inner.nodes.reserve(peer, &shared);
    // The node's listeners are removed with this task, however it ends.
    let _guard = nodes::Guard::new(&inner.nodes, node);
    tokio::select! {
        error = link::run(&shared, link, || {}) => {
            tracing::warn!(%peer, %error, "the channel to an application node is lost");
        }
        () = watch_events(&inner, node, &shared, events) => {}
    }
}

async fn watch_events(inner: &Arc<IoState>, node: u64, shared: &Arc<Shared>, mut events: Events) {
    // The tasks that make connections for programs end with the node's channel.
    let mut outgoing = JoinSet::new();
    while let Some(event) = events.recv().await {
        match event {
            Event::Up { name } => {
                tracing::info!(name, "the channel to an application node is up");
                inner.nodes.name(node, name);
                inner.look_at_taken();
                let taken = inner.nodes.taken();
                shared.with(|state| state.channel.tell_taken(&taken));
            }
            Event::Listen {
                listener,
                port,
                families,
            } => {
                let listening = clients::listen(inner, (node, listener), port, families);
                if let Err(errno) = listening {
                    count(&inner.counters.listens_refused);
                    let error = error(errno);
                    tracing::warn!(port, ?families, %error, "cannot listen on this port for an application node");
                    // The nodes get the list before this answer, so that the next program is refused at once.
                    inner.look_at_taken();
                }
                shared.with(|state| state.channel.answer_listen(listener, listening));
            }
            Event::Unlisten { listener } => {
                inner.nodes.unlisten(|known| *known == (node, listener));
            }
            Event::Asked {
                id,
                way: Way::Out { to, options },
            } => {
                let connecting = outgoing::connect(
                    Arc::clone(inner),
                    Arc::clone(shared),
                    id,
                    to.into(),
                    options,
                );
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
