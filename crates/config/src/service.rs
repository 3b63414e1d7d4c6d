//! `[[service]]`: what clients reach.

use std::num::NonZeroU16;
use std::ops::Range;

use toml::Spanned;

use crate::address::ClusterAddress;
use crate::document::suggestion;
use crate::field::{Parsed, parse, parse_list};
use crate::health::HealthCheck;
use crate::name::{NodeName, ServiceName};
use crate::number::in_range;
use crate::problem::Problem;
use crate::raw::RawService;
use crate::report::Report;

/// What clients reach: a cluster address and a port, and who serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Unique among the services.
    pub name: ServiceName,
    /// The cluster address.
    pub address: ClusterAddress,
    /// Unique among the services of `address`.
    pub port: NonZeroU16,
    /// How a data server is chosen.
    pub policy: Policy,
    /// Its data servers: at least one, each a node with the role, in the order of the file.
    pub nodes: Vec<NodeName>,
    /// When a connection is handed to its data server.
    pub split: Split,
    /// How a data server checks its own local server; `None`: not at all.
    pub health: Option<HealthCheck>,
}

/// How a data server is chosen for a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Each in turn.
    RoundRobin,
    /// Each in turn, as often as its weight says.
    Weighted,
    /// By the client's address, with a Maglev table.
    Client,
}

/// When a connection is split off to its data server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// When the client's first bytes arrive.
    Request,
    /// At the end of the handshake: the server speaks first.
    Ack,
}

/// What could be read of a service; see [`crate::node::Draft`].
pub(crate) struct Draft {
    pub(crate) header: Range<usize>,
    pub(crate) name: Option<Spanned<ServiceName>>,
    pub(crate) address: Option<Spanned<ClusterAddress>>,
    pub(crate) port: Option<Spanned<u16>>,
    pub(crate) policy: Option<Policy>,
    pub(crate) nodes: Parsed<Vec<Spanned<NodeName>>>,
    split: Option<Split>,
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
        let policy = parse(report, "policy", raw.policy, |text| {
            one_of("policy", &text, POLICIES)
        });
        let split = parse(report, "split", raw.split, |text| {
            one_of("split", &text, SPLITS)
        });
        Self {
            name,
            address,
            port,
            policy: policy.or(Policy::RoundRobin),
            nodes: parse_list(report, "nodes", raw.nodes, |text| text.parse()),
            split: split.or(Split::Request),
            health: HealthCheck::parse(report, raw.health),
            header,
        }
    }

    /// The service, if all of it could be read; `nodes` are its data servers.
    pub(crate) fn finish(self, nodes: Vec<NodeName>) -> Option<Service> {
        Some(Service {
            name: self.name?.into_inner(),
            address: self.address?.into_inner(),
            port: NonZeroU16::new(self.port?.into_inner())?,
            policy: self.policy?,
            nodes,
            split: self.split?,
            health: self.health?,
        })
    }
}

const POLICIES: &[(&str, Policy)] = &[
    ("round-robin", Policy::RoundRobin),
    ("weighted", Policy::Weighted),
    ("client", Policy::Client),
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
