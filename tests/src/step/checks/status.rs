//! A step that checks what `baton status --json` says.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, anyhow, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::span::Span;
use crate::wait::until;
use crate::world::World;

/// Asks a node for its status until it is as expected.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    on: String,
    /// The data servers that take connections, by service. The list must be complete.
    #[serde(default)]
    taking: BTreeMap<String, Vec<String>>,
    /// For each data server that takes no connections, part of the reason that the status gives, for any service.
    #[serde(default)]
    out: BTreeMap<String, String>,
    /// The states of other nodes.
    #[serde(default)]
    state: BTreeMap<String, String>,
    /// Whether other nodes can be reached.
    #[serde(default)]
    reachable: BTreeMap<String, bool>,
    /// The nodes whose messages are refused because of their clocks, and by how many hours they are behind. The list
    /// must be complete.
    refused: Option<BTreeMap<String, i64>>,
    /// Texts that the human-readable status must contain.
    #[serde(default)]
    says: Vec<String>,
    /// The XDP mode: "native" or "generic".
    xdp: Option<String>,
    /// The node's failover state: "front", "standby" and so on.
    failover: Option<String>,
    /// The connection server that is in front.
    front: Option<String>,
    /// The greatest number of live entries in the TCP table, which is swept every few seconds.
    live_at_most: Option<u64>,
    #[serde(default = "crate::wait::patience")]
    within: Span,
}

impl Status {
    /// Runs the step.
    ///
    /// # Errors
    /// The status was not as expected until the time was up.
    pub fn run(&self, world: &mut World) -> Result<()> {
        until(self.within, || {
            // A node that is starting does not answer for a while.
            let status = world.status(&self.on)?;
            let checked = self.check(&status).and_then(|()| self.read(world));
            checked.map_err(|error| {
                let (services, nodes) = (&status["services"], &status["nodes"]);
                anyhow!(
                    "{} says otherwise: {error:#}\nservices: {services}\nnodes: {nodes}",
                    self.on
                )
            })
        })
    }

    fn read(&self, world: &World) -> Result<()> {
        if self.says.is_empty() {
            return Ok(());
        }
        let output = world.baton(&self.on, &["status"])?;
        let text = String::from_utf8_lossy(&output.stdout);
        for part in &self.says {
            ensure!(text.contains(part), "{part:?} is not in\n{text}");
        }
        Ok(())
    }

    fn check(&self, status: &Value) -> Result<()> {
        for (name, expected) in &self.taking {
            let taking = &named(&status["services"], name)?["taking"];
            ensure!(
                *taking == serde_json::json!(expected),
                "{name} is taken by {taking}"
            );
        }
        for (name, why) in &self.out {
            let services = status["services"].as_array().into_iter().flatten();
            let mut out = services
                .filter_map(|service| service["out"].as_array())
                .flatten();
            let found = out.any(|one| {
                one[0] == **name && one[1].as_str().is_some_and(|said| said.contains(why))
            });
            ensure!(found, "{name} is not out because {why:?}");
        }
        for (name, state) in &self.state {
            let said = &named(&status["nodes"], name)?["state"];
            ensure!(*said == **state, "{name} is {said}");
        }
        for (name, reachable) in &self.reachable {
            let said = &named(&status["nodes"], name)?["reachable"];
            ensure!(said == reachable, "whether {name} is reachable: {said}");
        }
        if let Some(expected) = &self.refused {
            let nodes = status["nodes"].as_array().into_iter().flatten();
            let refused = nodes.filter(|node| node["clock_refused"] == true);
            let hours: BTreeMap<String, i64> = refused
                .filter_map(|node| {
                    let name = node["name"].as_str()?.to_owned();
                    Some((name, node["clock_skew_ms"].as_i64()? / 3_600_000))
                })
                .collect();
            ensure!(hours == *expected, "refused for their clocks: {hours:?}");
        }
        if let Some(xdp) = &self.xdp {
            ensure!(status["xdp"] == **xdp, "XDP is {}", status["xdp"]);
        }
        let failover = &status["failover"];
        if let Some(state) = &self.failover {
            ensure!(failover["state"] == **state, "of failover: {failover}");
        }
        if let Some(front) = &self.front {
            ensure!(failover["front"] == **front, "of failover: {failover}");
        }
        if let Some(most) = self.live_at_most {
            let live = &status["flows"]["live"];
            ensure!(
                live.as_u64().is_some_and(|live| live <= most),
                "{live} flows live"
            );
        }
        Ok(())
    }
}

fn named<'a>(list: &'a Value, name: &str) -> Result<&'a Value> {
    let mut entries = list.as_array().into_iter().flatten();
    entries
        .find(|entry| entry["name"] == name)
        .with_context(|| format!("it does not know {name}"))
}
