//! Steps that change configurations.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use baton_lab::Signal;
use serde::Deserialize;
use toml::{Table, Value};

use crate::change::merge;
use crate::wait::{patience, until};
use crate::world::World;

/// Changes the configuration files of nodes, one after the other, and has each node read its file again.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reload {
    on: Vec<String>,
    /// The changes, merged into the file as `change` is into a lab file. `{key}` is the cluster's first key.
    set: Table,
    /// Expects that the change is refused, with this text in the reason, and that the node goes on unchanged. The file
    /// is then restored.
    refused: Option<String>,
}

impl Reload {
    /// Runs the step.
    ///
    /// # Errors
    /// The node refused a change that it should take, or took one that it should refuse.
    pub fn run(&self, world: &mut World) -> Result<()> {
        for host in &self.on {
            self.reload(world, host)
                .with_context(|| format!("on {host}"))?;
        }
        Ok(())
    }

    fn reload(&self, world: &World, host: &str) -> Result<()> {
        let path = world.config_path(host)?;
        let before = std::fs::read_to_string(&path)?;
        let config = changed(world, host, before.parse()?, &self.set)?;
        let known = settled(world, host)?;
        write(&path, &config.to_string())?;
        match &self.refused {
            None => {
                let output = world.baton(host, &["reload"])?;
                let said = String::from_utf8_lossy(&output.stderr);
                ensure!(
                    output.status.success(),
                    "baton reload: {}\n{said}",
                    output.status
                );
            }
            Some(reason) => {
                let refused = refuse(world, host, reason);
                write(&path, &before)?;
                refused?;
                let now = settled(world, host)?;
                ensure!(
                    now == known,
                    "it was refused, but changed something:\n{known}\n{now}"
                );
            }
        }
        Ok(())
    }
}

/// Checks that `baton reload`, which reads the file itself, refuses the change, and that the node refuses it, too,
/// when a signal makes it read the file on its own.
fn refuse(world: &World, host: &str, reason: &str) -> Result<()> {
    let output = world.baton(host, &["reload"])?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success(), "it was reloaded");
    ensure!(
        said.contains(reason),
        "it was refused because of {said:?}, not {reason:?}"
    );
    let log = world.log_path(host, "node")?;
    let before = std::fs::read_to_string(&log)?.len();
    world.lab.kill(host, "node", Signal::SIGHUP)?;
    until(patience(), || {
        let said = std::fs::read_to_string(&log)?.split_off(before);
        ensure!(
            said.contains("not reloaded") && said.contains(reason),
            "after SIGHUP the node logs {said:?}, not {reason:?}"
        );
        Ok(())
    })
}

/// Applies a step's changes to a configuration.
///
/// # Errors
/// The lab has no such host.
pub fn changed(world: &World, host: &str, mut config: Table, set: &Table) -> Result<Table> {
    let mut set = set.clone();
    fill(world, host, &mut set)?;
    merge(&mut config, &set);
    Ok(config)
}

/// Writes a file in place, so that its mode stays.
///
/// # Errors
/// The file system refuses.
pub fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The fields of a service, its pools and its routes that go on counting, for responses to earlier requests.
const TALLIES: [&str; 6] = [
    "requests",
    "bytes",
    "handovers",
    "taken_back",
    "unavailable",
    "closed",
];

/// The part of a node's status that only a new configuration changes.
fn settled(world: &World, host: &str) -> Result<serde_json::Value> {
    let status = world.status(host)?;
    let nodes = status["nodes"].as_array().into_iter().flatten();
    let names: Vec<_> = nodes
        .map(|node| (node["name"].clone(), node["address"].clone()))
        .collect();
    let mut services = status["services"].clone();
    leave_out_tallies(&mut services);
    Ok(serde_json::json!([names, services]))
}

fn leave_out_tallies(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            fields.retain(|name, _| !TALLIES.contains(&name.as_str()));
            fields.values_mut().for_each(leave_out_tallies);
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(leave_out_tallies),
        _ => {}
    }
}

fn fill(world: &World, host: &str, table: &mut Table) -> Result<()> {
    for value in table.iter_mut().map(|(_, value)| value) {
        match value {
            Value::String(text) => *text = world.fill(host, text)?,
            Value::Table(inner) => fill(world, host, inner)?,
            _ => {}
        }
    }
    Ok(())
}
