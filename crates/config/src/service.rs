//! `[[service]]`: a cluster address and port that clients reach.

pub mod condition;
pub mod health;
pub mod host;
pub mod hsts;
pub(crate) mod keys;
pub mod large;
pub mod overflow;
pub mod path;
pub mod policy;
pub mod pool;
pub mod protocol;
pub(crate) mod redirect;
pub mod relay_to;
pub mod route;
pub mod terminate;
pub mod weights;

use std::num::NonZeroU16;
use std::time::Duration;

use crate::service::health::HealthCheck;
use crate::service::large::Large;
use crate::service::overflow::Overflow;
use crate::service::policy::Policy;
use crate::service::pool::Pool;
use crate::service::protocol::{ClientProtocol, UnknownName};
use crate::service::relay_to::RelayTo;
use crate::service::route::Route;
use crate::service::terminate::Terminate;
use crate::service::weights::Weights;
use crate::values::address::ClusterAddress;
use crate::values::members::Members;
use crate::values::name::{NodeName, ServiceName};
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
    /// How data servers speak TLS in place of their local servers. `None`: these do it themselves, or clients speak HTTP.
    pub terminate: Option<Terminate>,
    /// The service has no servers: agents send its clients to HTTPS, at this port of the same address.
    pub redirect: Option<NonZeroU16>,
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

    /// Whether the owner of a connection judges which data server each request on it is for, or a TLS connection. It
    /// does not under [`Split::Ack`], nor if connections never move and the service has neither routes, size classes
    /// nor a dispatcher.
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

    /// Whether agents speak TLS to clients and have each request judged whose it is.
    pub fn routes_inside_tls(&self) -> bool {
        self.terminate.is_some() && !self.routes.is_empty()
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

words! {
    /// When a connection moves to another data server, between two of its requests.
    pub enum Handover "handover" {
        /// It moves if its owner is not, or is no longer, among the data servers that may answer the request.
        AsNeeded = "as-needed",
        /// A data server is chosen anew for every request.
        EveryRequest = "every-request",
        /// It stays where its first request went.
        Never = "never",
    }
}

words! {
    /// When a connection is split off to its data server.
    pub enum Split "split" {
        /// When the client's first bytes arrive.
        Request = "request",
        /// At the end of the handshake, for protocols in which the server speaks first.
        Ack = "ack",
    }
}
