//! `overflow`: the limits of the policy of that name, beyond which other data servers help the home.

use std::num::NonZeroU32;

use crate::reading::problem::Problem;
use crate::reading::report::Report;
use crate::reading::schema::keys;
use crate::reading::value::{text, value};
use crate::values::name::NodeName;
use crate::values::number::number;

/// The home, which is the data server that serves alone, and the limits of its load. At least one limit is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// The home. If it is `None` or not among the data servers, the node that chooses is the home itself if it is
    /// among them, else the first data server is.
    pub home: Option<NodeName>,
    /// The limit for the share of all CPUs of the home that is busy, in permille.
    pub cpu: Option<u16>,
    /// The limit for the number of established connections of the service.
    pub connections: Option<NonZeroU32>,
}

keys! {
    /// Under policy "overflow", which node is the home and when it has too much to do: one limit or both.
    Keys "[service.overflow]" {
        /// default: the connection server itself if it is among the nodes, else the first of them
        home: NodeName = text, example "cs1";
        /// use of all its node's processors, for whatever purpose
        cpu: u16 = value(permille), example 0.8;
        /// established connections of this service on all nodes; the home keeps its part of them
        connections: NonZeroU32 = number(1..=1_000_000_000u32), example 1000;
    }
}

impl Keys {
    /// Reports that there is no limit.
    pub(crate) fn check(&self, report: &mut Report<'_>) {
        if self.cpu.is_absent() && self.connections.is_absent() {
            let remedy = "add cpu = 0.8, connections = 1000, or both";
            report.error(self.at.clone(), "overflow has no limit", remedy);
        }
    }

    /// The settings, if all of them could be read.
    pub(crate) fn finish(self) -> Option<Overflow> {
        Some(Overflow {
            home: self.home.optional()?,
            cpu: self.cpu.optional()?,
            connections: self.connections.optional()?,
        })
    }
}

/// Converts a share from 0.01 to 1.0 to permille.
fn permille(_key: &str, share: f64) -> Result<u16, Problem> {
    if !(0.01..=1.0).contains(&share) {
        return Err(Problem::new(
            format!("cpu = {share} is out of range"),
            "choose from 0.01 to 1.0: a share of all processors of the node",
        ));
    }
    Ok((share * 1000.0).round() as u16) // at most 1000
}
