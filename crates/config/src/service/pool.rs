//! `[[service.pool]]`: some data servers of a service.

use toml::Spanned;

use crate::reading::schema::{keys, table};
use crate::reading::value::{list, text, value};
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

keys! {
    /// Requests for some content can go to data servers of their own: these are pools, and routes lead there.
    /// This file may have at most 128 services and pools together, and 1024 routes with 63 different hosts.
    Keys "[[service.pool]]", lacks "this pool has no" {
        /// unique within the service
        name: PoolName = text, required "\"…\"", example "images";
        /// default: those of the service
        nodes: Vec<Spanned<NodeName>> = list(text), example ["ds1"];
        weights: Weights = value(Weights::parse);
        /// default: that of the service. `weights` and `overflow` are possible as well; default: those of the service
        policy: Policy = text, example "path";
        overflow: overflow::Keys = table;
    }
}

impl Keys {
    /// How a data server is chosen, by the pool's own policy or else that of the service; `None` if it could not be
    /// read.
    pub(crate) fn policy(&self, of_service: Option<Policy>) -> Option<Policy> {
        self.policy.clone().optional()?.or(of_service)
    }

    /// The pool, if all of it could be read. An absent key has the value of the service.
    pub(crate) fn finish(
        self,
        nodes: Option<Members>,
        of_service: Policy,
        weights_of_service: &Weights,
        overflow_of_service: Option<&Overflow>,
    ) -> Option<Pool> {
        let policy = self.policy(Some(of_service))?;
        let overflow = match self.overflow.optional()? {
            None => overflow_of_service.cloned(),
            Some(own) => Some(own.finish()?),
        };
        Some(Pool {
            name: self.name.value()?,
            nodes: nodes?,
            weights: self.weights.or(weights_of_service.clone())?,
            policy,
            overflow: overflow.filter(|_| policy == Policy::Overflow),
        })
    }
}
