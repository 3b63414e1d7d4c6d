//! `[[service.pool]]`: some data servers of a service.

use std::ops::Range;

use toml::Spanned;

use crate::reading::field::{Parsed, parse, parse_list};
use crate::reading::problem::Problem;
use crate::reading::raw::RawPool;
use crate::reading::report::Report;
use crate::service::overflow::{self, Overflow};
use crate::service::policy::Policy;
use crate::service::weights::Weights;
use crate::values::members::Members;
use crate::values::name::{NodeName, PoolName};

/// Data servers that a route can lead to, and how one of them is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The name, unique among the pools of the service.
    pub name: PoolName,
    /// Its data servers.
    pub nodes: Members,
    /// The weights in this pool that replace the nodes' own weights.
    pub weights: Weights,
    /// How a data server of the pool is chosen.
    pub policy: Policy,
    /// The limits for [`Policy::Overflow`]; `None` under any other policy.
    pub overflow: Option<Overflow>,
}

/// The values of a pool that could be read; see [`crate::sections::node::Draft`]. An absent key has the value of the
/// service.
pub(crate) struct Draft {
    pub(crate) header: Range<usize>,
    pub(crate) name: Option<Spanned<PoolName>>,
    pub(crate) nodes: Parsed<Vec<Spanned<NodeName>>>,
    pub(crate) weights: Parsed<Weights>,
    pub(crate) policy: Parsed<Policy>,
    pub(crate) overflow: Parsed<overflow::Draft>,
}

impl Draft {
    pub(crate) fn parse(report: &mut Report<'_>, raw: Spanned<RawPool>) -> Self {
        let header = raw.span();
        let raw = raw.into_inner();
        let name = parse(report, "name", raw.name, |text| text.parse()).required(
            report,
            header.clone(),
            || Problem::missing("this pool", "name", "\"…\""),
        );
        Self {
            header,
            name,
            nodes: parse_list(report, "nodes", raw.nodes, |text| text.parse()),
            weights: parse(report, "weights", raw.weights, Weights::try_from),
            policy: parse(report, "policy", raw.policy, |text| text.parse()),
            overflow: overflow::Draft::parse(report, raw.overflow),
        }
    }

    /// The pool, if all of it could be read.
    pub(crate) fn finish(
        self,
        nodes: Option<Members>,
        of_service: Policy,
        weights_of_service: &Weights,
        overflow_of_service: Option<&Overflow>,
    ) -> Option<Pool> {
        let policy = self.policy.or(of_service)?;
        let overflow = match self.overflow.optional()? {
            None => overflow_of_service.cloned(),
            Some(own) => Some(own.finish()?),
        };
        Some(Pool {
            name: self.name?.into_inner(),
            nodes: nodes?,
            weights: self.weights.or(weights_of_service.clone())?,
            policy,
            overflow: overflow.filter(|_| policy == Policy::Overflow),
        })
    }
}
