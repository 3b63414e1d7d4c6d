//! The application nodes, the ports that they listen on, and the listening sockets for these ports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_saps_protocol::ports::Ports;
use baton_saps_protocol::wire::{Errno, Families, ListenerTag, TakenPort};
use baton_saps_protocol::{Counters, PortPolicy};
use socket2::SockRef;
use tokio::net::TcpListener;

use crate::ChannelReport;
use crate::shared::Shared;

/// The number of a node, and one of its listeners.
pub(super) type Listener = (u64, ListenerTag);

#[derive(Debug)]
pub(super) struct Nodes {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    next: u64,
    nodes: BTreeMap<u64, Node>,
    ports: Ports<Listener>,
    sockets: BTreeMap<(IpAddr, u16), Arc<TcpListener>>,
    /// The weights by the nodes' names. A node without an entry has weight 1.
    weights: BTreeMap<String, u8>,
    /// The ports that other programs of this host have, in ascending order.
    taken: Vec<TakenPort>,
    /// The sum of the counters of nodes that are gone.
    past: Counters,
}

#[derive(Debug)]
struct Node {
    /// The node's name; `None` until its Hello has arrived.
    name: Option<String>,
    peer: SocketAddr,
    shared: Arc<Shared>,
}

/// Removes a node and its listeners when dropped.
pub(super) struct Guard<'a> {
    nodes: &'a Nodes,
    node: u64,
}

impl<'a> Guard<'a> {
    pub(super) fn new(nodes: &'a Nodes, node: u64) -> Self {
        Self { nodes, node }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.nodes.unlisten(|(node, _)| *node == self.node);
        let mut state = self.nodes.lock();
        if let Some(node) = state.nodes.remove(&self.node) {
            state.past.add(&node.shared.counters());
        }
    }
}

/// A client's connection for which a listener was chosen. It counts as open until this is dropped.
pub(super) struct Turn<'a> {
    nodes: &'a Nodes,
    port: u16,
    is_ipv6: bool,
    pub(super) listener: Listener,
    pub(super) shared: Arc<Shared>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.nodes.lock();
        state.ports.ended(self.port, self.is_ipv6, self.listener);
    }
}

impl State {
    fn weight(&self, node: &str) -> u8 {
        self.weights.get(node).copied().unwrap_or(1)
    }
}

impl Nodes {
    pub(super) fn new(policy: PortPolicy, weights: BTreeMap<String, u8>) -> Self {
        let state = State {
            next: 0,
            nodes: BTreeMap::new(),
            ports: Ports::new(policy),
            sockets: BTreeMap::new(),
            weights,
            taken: Vec::new(),
            past: Counters::default(),
        };
        Self {
            state: Mutex::new(state),
        }
    }

    /// Sets another policy and other weights, from the next connection on.
    pub(super) fn set_policy(&self, policy: PortPolicy, weights: BTreeMap<String, u8>) {
        let mut state = self.lock();
        state.weights = weights;
        let State { ports, weights, .. } = &mut *state;
        ports.set_policy(policy, |name| weights.get(name).copied().unwrap_or(1));
    }

    /// The addresses of the listening sockets for clients.
    pub(super) fn sockets(&self) -> BTreeSet<SocketAddr> {
        let state = self.lock();
        let addresses = state.sockets.keys();
        addresses
            .map(|address| SocketAddr::from(*address))
            .collect()
    }

    /// The ports that other programs of this host have, as far as is known.
    pub(super) fn taken(&self) -> Vec<TakenPort> {
        self.lock().taken.clone()
    }

    /// Remembers the ports that other programs of this host have, and tells every node if they have changed. Returns
    /// those that were not taken before.
    pub(super) fn set_taken(&self, taken: Vec<TakenPort>) -> Vec<TakenPort> {
        let mut state = self.lock();
        if state.taken == taken {
            return Vec::new();
        }
        for node in state.nodes.values() {
            node.shared.with(|state| state.channel.tell_taken(&taken));
        }
        let new = taken.iter().filter(|port| !state.taken.contains(port));
        let new = new.copied().collect();
        state.taken = taken;
        new
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a node whose channel begins, and returns its number.
    pub(super) fn reserve(&self, peer: SocketAddr, shared: &Arc<Shared>) -> u64 {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        let node = Node {
            name: None,
            peer,
            shared: Arc::clone(shared),
        };
        state.nodes.insert(number, node);
        number
    }

    /// Sets the name that a node has said in its Hello.
    pub(super) fn name(&self, node: u64, name: String) {
        if let Some(node) = self.lock().nodes.get_mut(&node) {
            node.name = Some(name);
        }
    }

    /// Adds a listener. Returns the port and the sockets that were opened for it. `open` opens these sockets, given
    /// the addresses on which nothing listens yet.
    ///
    /// # Errors
    /// EADDRINUSE if this node has the port already; the errors of `open`.
    pub(super) fn listen(
        &self,
        listener: Listener,
        port: u16,
        families: Families,
        addresses: &[IpAddr],
        open: impl Fn(&[IpAddr], u16) -> Result<Vec<Arc<TcpListener>>, Errno>,
    ) -> Result<(u16, Vec<Arc<TcpListener>>), Errno> {
        let mut state = self.lock();
        if port != 0 && (state.ports.on(port, families)).any(|(node, _)| node == listener.0) {
            return Err(Errno::ADDRESS_IN_USE);
        }
        let missing: Vec<IpAddr> = (addresses.iter().copied())
            .filter(|address| !state.sockets.contains_key(&(*address, port)))
            .collect();
        let opened = open(&missing, port)?;
        let mut port = port;
        for socket in &opened {
            let local = socket
                .local_addr()
                .map_err(|error| crate::shared::errno(&error))?;
            port = local.port();
            state.sockets.insert((local.ip(), port), Arc::clone(socket));
        }
        let name = (state.nodes.get(&listener.0)).and_then(|node| node.name.clone());
        let name = name.unwrap_or_default();
        let weight = state.weight(&name);
        state.ports.add(port, families, listener, &name, weight);
        Ok((port, opened))
    }

    /// Removes the listeners for which `is_gone` holds, and closes the sockets that no other listener needs.
    pub(super) fn unlisten(&self, is_gone: impl Fn(&Listener) -> bool) {
        let mut state = self.lock();
        let State { ports, sockets, .. } = &mut *state;
        ports.remove(is_gone);
        sockets.retain(|(address, port), socket| {
            let is_needed = ports.count(*port, address.is_ipv6()) > 0;
            if !is_needed {
                // The socket is shut down at once, even if a task still holds it: from here on clients are refused,
                // and the port is free.
                let _ = SockRef::from(&**socket).shutdown(Shutdown::Both);
            }
            is_needed
        });
    }

    /// Chooses the listener that gets a client's connection on a port, leaving out those in `tried`.
    pub(super) fn next(
        &self,
        port: u16,
        is_ipv6: bool,
        client: IpAddr,
        tried: &[Listener],
    ) -> Option<Turn<'_>> {
        let mut state = self.lock();
        let is_tried = |listener: &Listener| tried.contains(listener);
        let listener = state.ports.next(port, is_ipv6, client, is_tried)?;
        // A node that is gone has no listeners, so the node is found.
        let shared = Arc::clone(&state.nodes.get(&listener.0)?.shared);
        Some(Turn {
            nodes: self,
            port,
            is_ipv6,
            listener,
            shared,
        })
    }

    #[allow(
        clippy::type_complexity,
        reason = "three lists, named where they are used"
    )]
    pub(super) fn report(&self) -> (Vec<ChannelReport>, Vec<(u16, bool, usize)>, Counters) {
        let state = self.lock();
        let mut all = state.past;
        let mut nodes = Vec::new();
        for node in state.nodes.values() {
            let counters = node.shared.counters();
            all.add(&counters);
            nodes.extend(node.name.as_ref().map(|name| ChannelReport {
                node: name.clone(),
                address: node.peer,
                is_up: true,
                counters,
                gauges: node.shared.gauges(),
            }));
        }
        let ports = (state.ports.ports())
            .map(|(port, is_ipv6)| (port, is_ipv6, state.ports.count(port, is_ipv6)))
            .collect();
        (nodes, ports, all)
    }
}
