//! The I/O server: it has the cluster address, and TCP with all clients; application nodes have the programs.

mod clients;
mod nodes;
mod outgoing;
mod pump;
mod taken;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use baton_saps_protocol::wire::{Errno, Side, TakenPort, Way};
use baton_saps_protocol::{Counters, Event, PortPolicy};
use baton_wire::ClusterKey;
use tokio::task::JoinSet;

use self::nodes::Nodes;
use crate::events::Events;
use crate::network::{Acceptor, Handshake, Link, network};
use crate::shared::{Shared, error};
use crate::{ChannelReport, NetworkKind, link};

/// What an I/O server needs to know.
#[derive(Clone, Debug)]
pub struct IoSettings {
    /// The name of this node, as in `baton.toml`.
    pub node: String,
    /// Where application nodes reach it: its own address, and the port of `[forwarding]`. Port 0: any.
    pub listen: SocketAddr,
    /// What carries the channels.
    pub network: NetworkKind,
    /// The cluster's secret; both ends prove that they know it.
    pub key: ClusterKey,
    /// The secret before it, while keys are being rotated; believed as well.
    pub previous_key: Option<ClusterKey>,
    /// The cluster addresses, which this host has. Programs connect from the first of each IP version.
    pub cluster_addresses: Vec<IpAddr>,
    /// B_r: how many bytes of a connection from an application node are buffered here for its client.
    pub buffer: u32,
    /// Which of several nodes that listen on a port gets a client's connection.
    pub policy: PortPolicy,
    /// The nodes' weights, by name; who is not there has 1.
    pub weights: BTreeMap<String, u8>,
}

/// Between two looks at what other programs of this host listen on.
const LOOK: Duration = Duration::from_secs(1);

/// A running I/O server. Dropped, it ends: its clients are reset.
#[derive(Debug)]
pub struct IoServer {
    inner: Arc<Inner>,
    local: SocketAddr,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Inner {
    settings: IoSettings,
    nodes: Nodes,
    tally: Tally,
}

/// What became of connections, counted by whoever sees it.
#[derive(Debug, Default)]
struct Tally {
    accepted: AtomicU64,
    unserved: AtomicU64,
    connected: AtomicU64,
    not_connected: AtomicU64,
    reset_by_client: AtomicU64,
    reset_by_node: AtomicU64,
    finished: AtomicU64,
    listens_refused: AtomicU64,
    channels_refused: AtomicU64,
}

/// What became of clients' connections, and of those that programs made, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounters {
    /// Accepted from clients.
    pub accepted: u64,
    /// Of these, reset because no node took them.
    pub unserved: u64,
    /// Made for programs.
    pub connected: u64,
    /// Could not be made for programs.
    pub not_connected: u64,
    /// Broken by the client, or on the way to it.
    pub reset_by_client: u64,
    /// Reset because the program, its node or the channel to it broke.
    pub reset_by_node: u64,
    /// Came to a regular end.
    pub finished: u64,
    /// Ports that a node asked for and that could not be listened on.
    pub listens_refused: u64,
    /// Channels of nodes that could not prove that they know the cluster key, or did not try.
    pub channels_refused: u64,
}

/// How an I/O server stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoReport {
    /// The application nodes whose channels are up.
    pub nodes: Vec<ChannelReport>,
    /// Each port that is listened on, whether on IPv6, and for how many nodes.
    pub ports: Vec<(u16, bool, usize)>,
    /// The ports that no node can have, because other programs of this host have them.
    pub taken: Vec<TakenPort>,
    /// Of connections.
    pub counters: IoCounters,
    /// Of all channels there have been, the present ones too.
    pub channels: Counters,
}

impl IoServer {
    /// Takes channels from now on. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If the port for the channels cannot be had.
    pub fn start(settings: IoSettings) -> io::Result<Self> {
        let (key, previous) = (&settings.key, settings.previous_key.as_ref());
        let network = network(settings.network, key, previous)?;
        let acceptor = network.listen(settings.listen)?;
        let local = acceptor.local()?;
        let nodes = Nodes::new(settings.policy, settings.weights.clone());
        let inner = Arc::new(Inner {
            settings,
            nodes,
            tally: Tally::default(),
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

    /// Another policy, and other weights, from the next client on.
    pub fn set_policy(&self, policy: PortPolicy, weights: BTreeMap<String, u8>) {
        self.inner.nodes.set_policy(policy, weights);
    }

    /// Where application nodes reach it.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// How it stands.
    pub fn report(&self) -> IoReport {
        let (nodes, ports, channels) = self.inner.nodes.report();
        IoReport {
            nodes,
            ports,
            taken: self.inner.nodes.taken(),
            counters: self.inner.tally.read(),
            channels,
        }
    }
}

impl Tally {
    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self) -> IoCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        IoCounters {
            accepted: read(&self.accepted),
            unserved: read(&self.unserved),
            connected: read(&self.connected),
            not_connected: read(&self.not_connected),
            reset_by_client: read(&self.reset_by_client),
            reset_by_node: read(&self.reset_by_node),
            finished: read(&self.finished),
            listens_refused: read(&self.listens_refused),
            channels_refused: read(&self.channels_refused),
        }
    }
}

impl Inner {
    /// Tells the nodes which ports other programs of this host have, if these are others than before.
    fn look_at_taken(&self) {
        let before = self.nodes.sockets();
        let listeners = match baton_net::listeners::listeners() {
            Ok(listeners) => listeners,
            // Then a node learns it when it asks.
            Err(error) => return tracing::debug!(%error, "what listens here is not known"),
        };
        let addresses = &self.settings.cluster_addresses;
        let after = self.nodes.sockets();
        // One that came or went meanwhile is not somebody else's.
        let is_ours = |address| before.contains(&address) || after.contains(&address);
        let taken = taken::taken(&listeners, addresses, is_ours);
        for TakenPort { port, families } in self.nodes.set_taken(taken) {
            tracing::info!(
                port,
                ?families,
                "another program of this host has this port: programs of application nodes cannot listen on it"
            );
        }
    }
}

async fn watch_taken(inner: Arc<Inner>) {
    loop {
        inner.look_at_taken();
        tokio::time::sleep(LOOK).await;
    }
}

async fn accept_nodes(inner: Arc<Inner>, mut acceptor: Box<dyn Acceptor>) {
    // Ends with this task: every node's channel, and with it the connections.
    let mut nodes = JoinSet::new();
    loop {
        match acceptor.accept().await {
            Ok(handshake) => {
                nodes.spawn(serve_node(Arc::clone(&inner), handshake));
            }
            Err(error) => {
                tracing::warn!(%error, "no channel can be accepted");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        while nodes.try_join_next().is_some() {}
    }
}

async fn serve_node(inner: Arc<Inner>, handshake: Handshake) {
    let link = match handshake.await {
        Ok(link) => link,
        Err(error) => {
            Tally::count(&inner.tally.channels_refused);
            tracing::warn!(%error, "a channel was refused");
            return;
        }
    };
    let Link { peer, .. } = link;
    let (name, buffer) = (&inner.settings.node, inner.settings.buffer);
    let (shared, events) = Shared::new(Side::Io, name, buffer);
    let node = inner.nodes.reserve(peer, &shared);
    // Its listeners go with this task, however it ends.
    let _guard = nodes::Guard::new(&inner.nodes, node);
    tokio::select! {
        error = link::run(&shared, link, || {}) => {
            tracing::warn!(%peer, %error, "the channel to an application node is lost");
        }
        () = watch_events(&inner, node, &shared, events) => {}
    }
}

async fn watch_events(inner: &Arc<Inner>, node: u64, shared: &Arc<Shared>, mut events: Events) {
    // Connections that are being made for programs end with the node.
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
                    Tally::count(&inner.tally.listens_refused);
                    let error = error(errno);
                    tracing::warn!(port, ?families, %error, "a node cannot listen");
                    // Before it hears that, so that its next program is refused at once.
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
