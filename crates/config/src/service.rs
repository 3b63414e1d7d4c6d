//! `[[service]]`: what clients reach.

pub mod condition;
pub mod health;
pub mod host;
pub mod large;
pub mod overflow;
pub mod path;
pub mod policy;
pub mod pool;
pub mod relay_to;
pub mod route;
pub mod weights;

use std::num::NonZeroU16;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use toml::Spanned;

use crate::reading::document::suggestion;
use crate::reading::field::{Parsed, parse, parse_list};
use crate::reading::problem::Problem;
use crate::reading::raw::RawService;
use crate::reading::report::Report;
use crate::service::health::HealthCheck;
use crate::service::large::Large;
use crate::service::overflow::Overflow;
use crate::service::policy::Policy;
use crate::service::pool::Pool;
use crate::service::relay_to::RelayTo;
use crate::service::route::Route;
use crate::service::weights::Weights;
use crate::values::address::ClusterAddress;
use crate::values::duration;
use crate::values::members::Members;
use crate::values::name::{NodeName, ServiceName};
use crate::values::number::in_range;

/// What clients reach: a cluster address and a port, and who serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Unique among the services.
    pub name: ServiceName,
    /// The cluster address.
    pub address: ClusterAddress,
    /// Unique among the services of `address`.
    pub port: NonZeroU16,
    /// How a data server is chosen for a request that no route takes.
    pub policy: Policy,
    /// The node that chooses, for its pools too; `None`: each data server itself.
    pub dispatcher: Option<NodeName>,
    /// With [`Policy::Overflow`], and only then.
    pub overflow: Option<Overflow>,
    /// The data servers for requests that no route takes.
    pub nodes: Members,
    /// Their shares in this service, where they are not their own.
    pub weights: Weights,
    /// Where the servers are that are in containers.
    pub relay_to: RelayTo,
    /// Who answers for the address, the same for all services of it; `None`: every connection server.
    pub connection_servers: Option<Members>,
    /// Where else requests can go, in the order of the file.
    pub pools: Vec<Pool>,
    /// Which requests do, in the order of the file, no two of equal host, path and
    /// conditions; none where
    /// `split` is [`Split::Ack`].
    pub routes: Vec<Route>,
    /// Who serves large content that no route takes; `None`: who serves the rest.
    pub large: Option<Large>,
    /// When a connection is handed to its data server.
    pub split: Split,
    /// When a connection moves to another data server.
    pub handover: Handover,
    /// How long a client may take for the head of a request, 1 s to 1 h.
    pub head_timeout: Duration,
    /// Whether a response whose data server dies goes on from another one: all of a pool answer alike. Of requests that a
    /// route takes the route says so.
    pub resume: bool,
    /// Whether aware clients may send to their data servers themselves.
    pub direct: bool,
    /// How a data server checks its own local server; `None`: not at all.
    pub health: Option<HealthCheck>,
}

impl Service {
    /// Whether some of its responses go on from another data server if their own dies.
    pub fn resumes(&self) -> bool {
        self.resume || self.routes.iter().any(|route| route.resume)
    }

    /// Whether the data server that has a connection judges whose each request on it is. Where all are its own, and nobody is
    /// to be asked who that is, nobody need.
    pub fn owner_routes(&self) -> bool {
        self.split == Split::Request
            && (self.has_pools() || !self.connections_stay() || self.dispatcher.is_some())
    }

    /// Whether a connection never leaves the data server that its first request went to.
    pub fn connections_stay(&self) -> bool {
        self.handover == Handover::Never
    }

    /// Whether what a request asks for decides which data servers may answer it.
    fn has_pools(&self) -> bool {
        !self.routes.is_empty() || self.large.is_some()
    }

    /// Every node that serves some of its requests, once each: its own, then its pools'.
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
    /// When its owner is not, or not any more, among those that are to answer the request.
    AsNeeded,
    /// A data server is chosen for every request.
    EveryRequest,
    /// It stays where its first request went.
    Never,
}

/// When a connection is split off to its data server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// When the client's first bytes arrive.
    Request,
    /// At the end of the handshake: the server speaks first.
    Ack,
}

/// What could be read of a service; see [`crate::sections::node::Draft`].
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
    pub(crate) split: Option<Split>,
    pub(crate) handover: Option<Handover>,
    pub(crate) head_timeout: Parsed<Duration>,
    pub(crate) resume: Parsed<bool>,
    pub(crate) direct: Parsed<bool>,
    health: Option<Option<HealthCheck>>,
}

impl Draft {
    pub(crate) fn parse(report: &mut Report<'_>, raw: Spanned<RawService>) -> Self {
        let header = raw.span();
        let raw = raw.into_inner();
        let missing = |key: &str, example: &str| {
            Problem::new(
                format!("this service has no {key}"),
                format!("add {key} = {example}"),
            )
        };
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
        let split = parse(report, "split", raw.split, |text| {
            one_of("split", &text, SPLITS)
        });
        let handover = parse(report, "handover", raw.handover, |text| {
            one_of("handover", &text, HANDOVERS)
        });
        let head_timeout = parse(report, "head_timeout", raw.head_timeout, |text| {
            duration::parse("head_timeout", &text, HEAD_TIMEOUT)
        });
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
            split: self.split?,
            handover: self.handover?,
            head_timeout: self.head_timeout.or(DEFAULT_HEAD_TIMEOUT)?,
            resume,
            direct: self.direct.or(false)?,
            health: self.health?,
        })
    }
}

/// The data servers of a service and of each of its pools, and its connection servers, where they
/// could be read.
pub(crate) struct Nodes {
    pub(crate) connection_servers: Option<Option<Members>>,
    pub(crate) own: Option<Members>,
    pub(crate) pools: Vec<Option<Members>>,
}

/// The indices of the pools that routes and size classes name, where they are known.
pub(crate) struct Targets {
    pub(crate) routes: Vec<Option<usize>>,
    pub(crate) large: Option<usize>,
}

impl Nodes {
    /// Each that could be read.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Members> {
        [&self.own].into_iter().chain(&self.pools).flatten()
    }
}

const HEAD_TIMEOUT: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3600);
/// As nginx has it.
const DEFAULT_HEAD_TIMEOUT: Duration = Duration::from_secs(60);

const HANDOVERS: &[(&str, Handover)] = &[
    ("as-needed", Handover::AsNeeded),
    ("every-request", Handover::EveryRequest),
    ("never", Handover::Never),
];

const SPLITS: &[(&str, Split)] = &[("request", Split::Request), ("ack", Split::Ack)];

/// The value of the word that `text` is.
pub(crate) fn one_of<T: Copy>(key: &str, text: &str, words: &[(&str, T)]) -> Result<T, Problem> {
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    Err(Problem::new(
        format!("there is no {key} \"{}\"", text.escape_debug()),
        suggestion(text, &known),
    ))
}
