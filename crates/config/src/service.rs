//! `[[service]]`: a cluster address and port that clients reach.

pub mod condition;
pub mod health;
pub mod host;
pub mod large;
pub mod overflow;
pub mod path;
pub mod policy;
pub mod pool;
pub mod protocol;
pub mod relay_to;
pub mod route;
pub mod weights;

use std::iter;
use std::num::NonZeroU16;
use std::time::Duration;

use toml::Spanned;

use crate::reading::parsed::Parsed;
use crate::reading::report::Report;
use crate::reading::schema::{keys, table, tables};
use crate::reading::value::{list, plain, text, value};
use crate::service::health::HealthCheck;
use crate::service::large::Large;
use crate::service::overflow::Overflow;
use crate::service::policy::Policy;
use crate::service::pool::Pool;
use crate::service::protocol::{ClientProtocol, UnknownName};
use crate::service::relay_to::RelayTo;
use crate::service::route::Route;
use crate::service::weights::Weights;
use crate::values::address::ClusterAddress;
use crate::values::duration::{HOUR, SECOND, duration};
use crate::values::members::Members;
use crate::values::name::{NodeName, ServiceName};
use crate::values::number::number;
use crate::values::words::words;

/// A cluster address and a port that clients reach, and the data servers that serve it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The name, unique among the services.
    pub name: ServiceName,
    /// The cluster address.
    pub address: ClusterAddress,
    /// The TCP port, unique among the services of `address`.
    pub port: NonZeroU16,
    /// How a data server is chosen for a request that no route takes.
    pub policy: Policy,
    /// The node that chooses data servers, for the pools too. `None`: each data server chooses itself.
    pub dispatcher: Option<NodeName>,
    /// The limits for [`Policy::Overflow`]; `None` under any other policy.
    pub overflow: Option<Overflow>,
    /// The data servers for requests that no route takes.
    pub nodes: Members,
    /// The weights in this service that replace the nodes' own weights.
    pub weights: Weights,
    /// The addresses of servers that run in containers.
    pub relay_to: RelayTo,
    /// The connection servers that answer for the address, the same for all services of it. `None`: every one.
    pub connection_servers: Option<Members>,
    /// The pools that routes and large content can lead to, in the order of the file.
    pub pools: Vec<Pool>,
    /// The routes, which send requests to pools, in the order of the file. No two have equal host, path and
    /// conditions. There are none if `split` is [`Split::Ack`].
    pub routes: Vec<Route>,
    /// The pool for large content that no route takes. `None`: size does not matter.
    pub large: Option<Large>,
    /// What clients speak.
    pub protocol: ClientProtocol,
    /// What becomes of a TLS connection that no route takes.
    pub unknown_name: UnknownName,
    /// When a connection is split off to its data server.
    pub split: Split,
    /// When a connection moves to another data server.
    pub handover: Handover,
    /// The longest time that a client may take for the head of a request, 1 s to 1 h.
    pub head_timeout: Duration,
    /// Whether a response whose data server dies goes on from another one. This needs data servers of a pool that all
    /// answer alike. For requests that a route takes [`Route::resume`] counts instead.
    pub resume: bool,
    /// Whether aware clients may send to their data servers themselves.
    pub direct: bool,
    /// How a data server checks its own local server. `None`: there is no check.
    pub health: Option<HealthCheck>,
}

impl Service {
    /// Whether some responses of the service go on from another data server if their own dies.
    pub fn resumes(&self) -> bool {
        self.resume || self.routes.iter().any(|route| route.resume)
    }

    /// Whether the owner of a connection judges which data server each request on it is for, or a TLS connection. It does
    /// not under [`Split::Ack`], nor if connections never move and the service has neither routes, size classes nor a
    /// dispatcher.
    pub fn owner_routes(&self) -> bool {
        self.split == Split::Request
            && (self.has_pools() || !self.connections_stay() || self.dispatcher.is_some())
    }

    /// Whether a connection never leaves the data server that its first request went to.
    pub fn connections_stay(&self) -> bool {
        self.handover == Handover::Never || self.is_tls()
    }

    /// Whether clients speak TLS, of which only servers have the keys.
    pub fn is_tls(&self) -> bool {
        self.protocol == ClientProtocol::Tls
    }

    /// Whether what a request asks for decides which data servers may answer it.
    fn has_pools(&self) -> bool {
        !self.routes.is_empty() || self.large.is_some() || self.unknown_name == UnknownName::Refuse
    }

    /// Every node that serves requests of the service, once each: the service's own, then those of its pools.
    pub fn data_servers(&self) -> Vec<&NodeName> {
        let pools = self.pools.iter().flat_map(|pool| &pool.nodes);
        let mut once = Vec::new();
        for node in self.nodes.iter().chain(pools) {
            if !once.contains(&node) {
                once.push(node);
            }
        }
        once
    }
}

/// When a connection moves to another data server, between two of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handover {
    /// It moves if its owner is not, or is no longer, among the data servers that may answer the request.
    AsNeeded,
    /// A data server is chosen anew for every request.
    EveryRequest,
    /// It stays where its first request went.
    Never,
}

words!(
    Handover,
    "handover",
    AsNeeded = "as-needed",
    EveryRequest = "every-request",
    Never = "never",
);

/// When a connection is split off to its data server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// When the client's first bytes arrive.
    Request,
    /// At the end of the handshake, for protocols in which the server speaks first.
    Ack,
}

words!(Split, "split", Request = "request", Ack = "ack");

keys! {
    /// What clients reach: the cluster address and a port.
    Keys "[[service]]", lacks "this service has no" {
        name: ServiceName = text, required "\"…\"", sample "web";
        /// The cluster address.
        address: ClusterAddress = text, required "\"192.0.2.100\", the one clients know", sample "192.0.2.100";
        port: NonZeroU16 = number(1..=u16::MAX), required "80", sample 80;
        /// How a data server is chosen:
        ///   "round-robin"   each in turn
        ///   "weighted"      each in turn, as often as its weight says
        ///   "client"        by the client's address (Maglev hashing: few clients move when a server leaves)
        ///   "path"          by the path of the request, also with Maglev hashing: each server's cache holds its part
        ///   "least-loaded"  each in turn, as often as its weight says, and more often if its node reports fewer
        ///                   connections of the service and less CPU: from 1/8 to 4 times its weight
        ///   "lard"          by the path, as long as no server has far more connections for its weight than
        ///                   the others; then another server gets a part of its paths (locality-aware request
        ///                   distribution)
        ///   "overflow"      one of them, the home, serves all it can; requests beyond its limits are delegated to
        ///                   the others, by their weights, until all of them fit into nine tenths of the limits
        /// Connections are the established ones, also those that are kept alive and idle. CPU is that of the whole
        /// node.
        policy: Policy = text, default "round-robin";
        /// The node that chooses by that policy, and by those of the pools (below). It must have the role "dispatcher".
        /// Data servers ask it, and remember its answers for a second for the same host and path (and client, under
        /// policy "client"), so that they ask only for new ones. By default every data server chooses itself.
        dispatcher: NodeName = text, example "dispatcher1";
        /// The data servers of this service. Default: every node with the role "ds". By `policy`, one of them
        /// serves every request that no route (below) takes.
        nodes: Vec<Spanned<NodeName>> = list(text), sample ["ds1", "ds2"];
        /// Weights for this service, where they differ from the nodes' own weights: 0-255, 0 takes no new connections.
        /// If the connection server is among the nodes, they set how much it delegates: in this example it would serve
        /// three of four requests itself.
        weights: Weights = value(Weights::parse), default {}, example { cs1 = 3, ds1 = 1 };
        /// Data servers whose server is in a container with a network of its own (Docker's bridge): the container's
        /// address, and the port inside it. The node's daemon then relays this service's connections there, from the
        /// clients' addresses. docs/containers.md says when that is needed. By default the server is on the node
        /// itself.
        relay_to: RelayTo = value(RelayTo::parse), default {}, example { ds1 = "172.17.0.2:80" };
        overflow: overflow::Keys = table;
        /// Which connection servers answer for the address. Default: all. Nodes that are connection server and data
        /// server, each with an address of its own, can delegate to each other. All services of one address must agree
        /// on this.
        connection_servers: Vec<Spanned<NodeName>> = list(text), example ["cs1"];
        /// What clients speak: "http", or "tls", of which only the servers have the keys. Then routes see the name of
        /// the server that a client wants (`host`) and the protocols that it offers (`alpn`), and a connection stays
        /// where they lead. There are no paths, methods and other parts of requests, and neither policy "path" nor
        /// "lard". docs/tls.md says more.
        protocol: ClientProtocol = text, default "http";
        /// With "tls", what becomes of a connection that no route takes: "serve", by the nodes above, or "refuse", with
        /// the alert unrecognized_name.
        unknown_name: UnknownName = text, default "serve", example "refuse";
        /// When the connection is split off to its data server: "request", when the client's first bytes arrive, or
        /// "ack", at the end of the handshake, for protocols in which the server speaks first. With "ack" no request is
        /// known yet, so there are no routes, and neither "path" nor "lard".
        split: Split = text, default "request";
        /// When a connection (of HTTP/1; others never move) goes to another data server, between two requests:
        ///   "as-needed"      when its data server is not, or no longer, among those that are to answer
        ///   "every-request"  a data server is chosen for every request: shares are of requests, not of connections
        ///   "never"          it stays where its first request went. Applications need this that authenticate
        ///                    connections rather than requests (NTLM)
        handover: Handover = text, default "as-needed";
        /// How long a client may take for the head of a request, from its first byte; 1s to 1h. Then it is answered
        /// with 408. With "tls", the connection just ends. Where connections stay where they began ("never" or "tls"
        /// without routes), only the server's own limit applies.
        head_timeout: Duration = duration(SECOND..=HOUR), default "60s";
        /// Whether a response goes on when its data server dies in the middle of it: another data server of the pool is
        /// asked for the same, byte by byte, and sends what the client does not have yet. Use it only where every data
        /// server of a pool gives exactly the same answer to a GET or HEAD: for files, not for generated pages.
        /// Responses under way of a data server that drains go on elsewhere at once (`baton drain`). A different
        /// length, ETag or Last-Modified is noticed, and the client's connection is reset; different content alone is
        /// not noticed. The price is a copy of each such request, and a look at the beginning of its response. It is
        /// not possible with split = "ack" or handover = "never". A route (below) can set something else for its
        /// requests.
        resume: bool = plain, default false, example true;
        /// Whether *aware* clients, hosts on which `baton client-agent` was set up, send their packets directly to the
        /// data server as soon as it has announced its address (IPv4). The connection server then sees no more of the
        /// connection. All other clients are served as before. Such a connection moves to the data server of each
        /// request like any other, and the client sends there. Its response is not resumed. These clients must be able
        /// to reach data servers at their own addresses, and behind routers by IP protocol 4. If they cannot, a
        /// connection waits for a second or two before it goes through the connection server again.
        direct: bool = plain, default false, example true;
        large: large::Keys = table;
        health: health::Keys = table, default {};
        pool: Vec<pool::Keys> = tables, default [];
        route: Vec<route::Keys> = tables, default [];
    }
}

impl Keys {
    /// The policies of the service and of its pools that choose by what a request asks for.
    pub(crate) fn policies_by_request(&self) -> impl Iterator<Item = &Spanned<Policy>> {
        let policies = self.pool.items().iter().map(|pool| &pool.policy);
        let given = iter::once(&self.policy)
            .chain(policies)
            .filter_map(Parsed::given);
        given.filter(|policy| policy.get_ref().needs_request())
    }

    /// Reports what does not fit together within a part of the service.
    pub(crate) fn check(&self, report: &mut Report<'_>) {
        let of_pools = self.pool.items().iter().map(|pool| &pool.overflow);
        for overflow in iter::once(&self.overflow)
            .chain(of_pools)
            .filter_map(Parsed::get)
        {
            overflow.check(report);
        }
        for route in self.route.items() {
            route.check(report);
        }
        if let Some(health) = self.health.get() {
            health.check(report);
        }
    }

    /// The service, if all of it could be read; `nodes` are its data servers, `targets` the pools
    /// that it names.
    pub(crate) fn finish(self, nodes: Nodes, targets: Targets) -> Option<Service> {
        let policy = self.policy.value()?;
        let weights = self.weights.value()?;
        let overflow = match self.overflow.optional()? {
            None => None,
            Some(keys) => Some(keys.finish()?),
        };
        let pools = self.pool.value()?.into_iter().zip(nodes.pools);
        let routes = self.route.value()?.into_iter().zip(targets.routes);
        let resume = self.resume.value()?;
        let large = match self.large.optional()? {
            None => None,
            Some(keys) => Some(keys.finish(targets.large)?),
        };
        Some(Service {
            name: self.name.value()?,
            address: self.address.value()?,
            port: self.port.value()?,
            policy,
            dispatcher: self.dispatcher.optional()?,
            nodes: nodes.own?,
            connection_servers: nodes.connection_servers?,
            pools: pools
                .map(|(pool, nodes)| pool.finish(nodes, policy, &weights, overflow.as_ref()))
                .collect::<Option<_>>()?,
            routes: routes
                .map(|(route, target)| route.finish(target, resume))
                .collect::<Option<_>>()?,
            large,
            weights,
            relay_to: self.relay_to.value()?,
            overflow: overflow.filter(|_| policy == Policy::Overflow),
            protocol: self.protocol.value()?,
            unknown_name: self.unknown_name.value()?,
            split: self.split.value()?,
            handover: self.handover.value()?,
            head_timeout: self.head_timeout.value()?,
            resume,
            direct: self.direct.value()?,
            health: self.health.value()?.finish()?,
        })
    }
}

/// The data servers of a service and of each of its pools, and its connection servers. A list is `None`
/// if it could not be read.
pub(crate) struct Nodes {
    pub(crate) connection_servers: Option<Option<Members>>,
    pub(crate) own: Option<Members>,
    pub(crate) pools: Vec<Option<Members>>,
}

/// The indices of the pools that routes and size classes name; `None` for an unknown name.
pub(crate) struct Targets {
    pub(crate) routes: Vec<Option<usize>>,
    pub(crate) large: Option<usize>,
}

impl Nodes {
    /// The lists of data servers that could be read.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Members> {
        [&self.own].into_iter().chain(&self.pools).flatten()
    }
}
