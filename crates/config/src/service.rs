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

use std::num::NonZeroU16;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use toml::Spanned;

use crate::reading::field::{Parsed, parse, parse_list};
use crate::reading::problem::Problem;
use crate::reading::raw::RawService;
use crate::reading::report::Report;
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
use crate::values::duration;
use crate::values::members::Members;
use crate::values::name::{NodeName, ServiceName};
use crate::values::number::in_range;
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

/// The values of a service that could be read; see [`crate::sections::node::Draft`].
pub(crate) struct Draft {
    pub(crate) header: Range<usize>,
    pub(crate) name: Option<Spanned<ServiceName>>,
    pub(crate) address: Option<Spanned<ClusterAddress>>,
    pub(crate) port: Option<Spanned<u16>>,
    pub(crate) policy: Parsed<Policy>,
    pub(crate) dispatcher: Parsed<NodeName>,
    pub(crate) nodes: Parsed<Vec<Spanned<NodeName>>>,
    pub(crate) weights: Parsed<Weights>,
    pub(crate) relay_to: Parsed<RelayTo>,
    pub(crate) overflow: Parsed<overflow::Draft>,
    pub(crate) connection_servers: Parsed<Vec<Spanned<NodeName>>>,
    pub(crate) pools: Vec<pool::Draft>,
    pub(crate) routes: Vec<route::Draft>,
    pub(crate) large: Parsed<large::Draft>,
    pub(crate) protocol: Option<ClientProtocol>,
    pub(crate) unknown_name: Parsed<UnknownName>,
    pub(crate) split: Option<Split>,
    pub(crate) handover: Option<Handover>,
    pub(crate) head_timeout: Parsed<Duration>,
    pub(crate) resume: Parsed<bool>,
    pub(crate) direct: Parsed<bool>,
    pub(crate) health: Option<Option<HealthCheck>>,
}

impl Draft {
    /// The policies of the service and of its pools that choose by what a request asks for.
    pub(crate) fn policies_by_request(&self) -> impl Iterator<Item = &Spanned<Policy>> {
        let policies = self.pools.iter().map(|pool| &pool.policy);
        let all = [&self.policy].into_iter().chain(policies);
        all.filter_map(|policy| match policy {
            Parsed::Right(policy) if policy.get_ref().needs_request() => Some(policy),
            _ => None,
        })
    }

    pub(crate) fn parse(report: &mut Report<'_>, raw: Spanned<RawService>) -> Self {
        let header = raw.span();
        let raw = raw.into_inner();
        let missing = |key, example| Problem::missing("this service", key, example);
        let name = parse(report, "name", raw.name, |text| text.parse()).required(
            report,
            header.clone(),
            || missing("name", "\"…\""),
        );
        let address = parse(report, "address", raw.address, |text| text.parse()).required(
            report,
            header.clone(),
            || missing("address", "\"192.0.2.100\", the one clients know"),
        );
        let port = parse(report, "port", raw.port, |n| {
            in_range::<u16>("port", n, 1..=65535)
        })
        .required(report, header.clone(), || missing("port", "80"));
        let policy = parse(report, "policy", raw.policy, |text| text.parse());
        let protocol = parse(report, "protocol", raw.protocol, |text| text.parse());
        let unknown_name = parse(report, "unknown_name", raw.unknown_name, |text| {
            text.parse()
        });
        let split = parse(report, "split", raw.split, |text| text.parse());
        let handover = parse(report, "handover", raw.handover, |text| text.parse());
        let head_timeout = duration::field(report, "head_timeout", raw.head_timeout, HEAD_TIMEOUT);
        let resume = parse(report, "resume", raw.resume, Ok);
        Self {
            name,
            address,
            port,
            policy,
            dispatcher: parse(report, "dispatcher", raw.dispatcher, |text| text.parse()),
            nodes: parse_list(report, "nodes", raw.nodes, |text| text.parse()),
            weights: parse(report, "weights", raw.weights, Weights::try_from),
            relay_to: parse(report, "relay_to", raw.relay_to, RelayTo::try_from),
            overflow: overflow::Draft::parse(report, raw.overflow),
            connection_servers: parse_list(
                report,
                "connection_servers",
                raw.connection_servers,
                |text| text.parse(),
            ),
            pools: (raw.pool.into_iter())
                .map(|pool| pool::Draft::parse(report, pool))
                .collect(),
            routes: (raw.route.into_iter())
                .map(|route| route::Draft::parse(report, route))
                .collect(),
            large: large::Draft::parse(report, raw.large),
            protocol: protocol.or(ClientProtocol::Http),
            unknown_name,
            split: split.or(Split::Request),
            handover: handover.or(Handover::AsNeeded),
            head_timeout,
            resume,
            direct: parse(report, "direct", raw.direct, Ok),
            health: HealthCheck::parse(report, raw.health),
            header,
        }
    }

    /// How a data server is chosen, if that could be read.
    pub(crate) fn policy(&self) -> Option<Policy> {
        self.policy.clone_or(Policy::RoundRobin)
    }

    /// The service, if all of it could be read; `nodes` are its data servers, `targets` the pools
    /// that it names.
    pub(crate) fn finish(self, nodes: Nodes, targets: Targets) -> Option<Service> {
        let policy = self.policy()?;
        let weights = self.weights.or(Weights::default())?;
        let overflow = match self.overflow.optional()? {
            None => None,
            Some(draft) => Some(draft.finish()?),
        };
        let pools = self.pools.into_iter().zip(nodes.pools);
        let routes = self.routes.into_iter().zip(targets.routes);
        let resume = self.resume.or(false)?;
        let large = match self.large.optional()? {
            None => None,
            Some(draft) => Some(draft.finish(targets.large)?),
        };
        let relay_to = self.relay_to.or(RelayTo::default())?;
        Some(Service {
            name: self.name?.into_inner(),
            address: self.address?.into_inner(),
            port: NonZeroU16::new(self.port?.into_inner())?,
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
            relay_to,
            overflow: overflow.filter(|_| policy == Policy::Overflow),
            protocol: self.protocol?,
            unknown_name: self.unknown_name.or(UnknownName::Serve)?,
            split: self.split?,
            handover: self.handover?,
            head_timeout: self.head_timeout.or(DEFAULT_HEAD_TIMEOUT)?,
            resume,
            direct: self.direct.or(false)?,
            health: self.health?,
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

const HEAD_TIMEOUT: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3600);
/// The default of nginx (`client_header_timeout`).
const DEFAULT_HEAD_TIMEOUT: Duration = Duration::from_secs(60);
