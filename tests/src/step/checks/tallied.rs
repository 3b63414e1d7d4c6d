//! A step that checks what a connection server has counted for its routes, pools and data servers.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::wait::{patience, until};
use crate::world::World;

/// Checks what was counted since the lab was raised, by what `baton status --json` says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tallied {
    on: String,
    service: String,
    #[serde(default)]
    routes: BTreeMap<String, Expected>,
    #[serde(default)]
    pools: BTreeMap<String, Expected>,
    /// What is counted for requests that match no route.
    rest: Option<Expected>,
    #[serde(default)]
    data_servers: BTreeMap<String, Expected>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    requests: u64,
    /// The bytes of the responses' bodies. What is counted also has the heads, whose lengths vary between
    /// [`HEADER_LEAST`] and [`HEADER_MOST`] for each response.
    bodies: u64,
    #[serde(default)]
    handovers: u64,
}

/// More bytes than the head of any response of the lab's servers has.
const HEADER_MOST: u64 = 500;

/// Fewer bytes than the head of any response has.
const HEADER_LEAST: u64 = 100;

impl Tallied {
    /// Runs the check.
    ///
    /// # Errors
    /// The counts differ.
    pub fn run(&self, world: &mut World) -> Result<()> {
        until(patience(), || self.check(&world.status(&self.on)?))
    }

    fn check(&self, status: &Value) -> Result<()> {
        let service = found(&status["services"], "name", &self.service)?;
        for (route, expected) in &self.routes {
            expected.check(route, found(&service["routes"], "route", route)?)?;
        }
        for (pool, expected) in &self.pools {
            expected.check(pool, found(&service["pools"], "name", pool)?)?;
        }
        for (node, expected) in &self.data_servers {
            expected.check(node, found(&status["nodes"], "name", node)?)?;
        }
        match &self.rest {
            Some(expected) => expected.check_tally("the rest", &service["rest"]),
            None => Ok(()),
        }
    }
}

impl Expected {
    fn check(&self, name: &str, entry: &Value) -> Result<()> {
        self.check_tally(name, &entry["tally"])
    }

    fn check_tally(&self, name: &str, tally: &Value) -> Result<()> {
        let number = |value: &Value| {
            let number = value.as_u64();
            number.with_context(|| format!("{name}: no number in {tally}"))
        };
        let bytes = number(&tally["bytes"])?;
        ensure!(
            number(&tally["requests"])? == self.requests
                && number(&tally["handovers"])? == self.handovers,
            "{name}: {tally}, not {self:?}"
        );
        let least = self.bodies + HEADER_LEAST * self.requests;
        let most = self.bodies + HEADER_MOST * self.requests;
        ensure!(
            (least..=most).contains(&bytes),
            "{name}: {bytes} bytes, not {least} to {most}"
        );
        Ok(())
    }
}

fn found<'a>(list: &'a Value, key: &str, name: &str) -> Result<&'a Value> {
    let mut entries = list.as_array().into_iter().flatten();
    entries
        .find(|entry| entry[key] == name)
        .with_context(|| format!("status does not know {name}"))
}
