//! A step that replaces a node's daemon and programs by the next version.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use toml::Table;

use super::config::{changed, write};
use super::process::Kill;
use crate::world::World;

/// Ends the daemons of nodes, one after the other, and starts the next version in place of each.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upgrade {
    on: Vec<String>,
    #[serde(default = "crate::step::clients::get::once")]
    times: usize,
    /// The signal that ends the daemon.
    #[serde(default = "quit")]
    signal: String,
    /// The maps that the next version lays out differently. The step simulates that: it changes the recorded layout of
    /// these maps, so that the next version's own layout differs from the record.
    #[serde(default)]
    other_layout: Vec<String>,
    /// Changes to the configuration.
    #[serde(default)]
    set: Table,
    /// Whether the next version is first started once by hand with --fresh.
    #[serde(default)]
    fresh: bool,
    /// Expects that the next version refuses to start, with this text in the reason. The step then restores what it
    /// changed, and no daemon runs.
    refused: Option<String>,
}

/// The recorded layouts of a node's maps, by the maps' names.
type Layouts = BTreeMap<String, String>;

impl Upgrade {
    /// Runs the step.
    ///
    /// # Errors
    /// The next version does not start although it should, or starts although it should not.
    pub fn run(&self, world: &mut World) -> Result<()> {
        for host in self.on.iter().cycle().take(self.times * self.on.len()) {
            self.upgrade(world, host)
                .with_context(|| format!("on {host}"))?;
        }
        Ok(())
    }

    fn upgrade(&self, world: &mut World, host: &str) -> Result<()> {
        let path = world.config_path(host)?;
        let config = std::fs::read_to_string(&path)?;
        if !self.set.is_empty() {
            // A node that watches its file would read this change; the labs' nodes do not watch.
            let next = changed(world, host, config.parse()?, &self.set)?;
            write(&path, &next.to_string())?;
        }
        let mut layouts = Layouts::new();
        for map in &self.other_layout {
            let number = layout(world, host, map)?;
            set_layout(world, host, map, "00 00 00 00 00 00 00 00")?;
            layouts.insert(map.clone(), number);
        }
        // The daemon ends last, because other nodes wait for its successor's first message no longer than for any
        // node's.
        Kill::one(host, "node", &self.signal).run(world)?;
        if let Some(reason) = &self.refused {
            refuse(world, host, reason)?;
            for (map, number) in &layouts {
                set_layout(world, host, map, number)?;
            }
            return write(&path, &config);
        }
        if self.fresh {
            start_fresh(world, host)?;
        }
        world.lab.restart(host, "node")?;
        for (map, number) in &layouts {
            let now = layout(world, host, map)?;
            ensure!(
                now == *number,
                "of {map}, {now} is written down, not {number}"
            );
        }
        Ok(())
    }
}

fn refuse(world: &World, host: &str, reason: &str) -> Result<()> {
    let output = world.baton(host, &["node"])?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success(), "it started:\n{said}");
    for part in [reason, "teardown", "--fresh"] {
        ensure!(said.contains(part), "{part:?} is not in\n{said}");
    }
    Ok(())
}

/// Starts the next version by hand, as an operator would, until it is ready; it then ends to make way for the service.
fn start_fresh(world: &World, host: &str) -> Result<()> {
    const SCRIPT: &str = "\"$0\" node --fresh --config \"$1\" & \
         until \"$0\" status --config \"$1\" >/dev/null 2>&1; do \
         kill -0 $! || exit 1; sleep 0.1; done; \
         kill -QUIT $!; wait $!";
    let (baton, config) = (
        world.baton.display().to_string(),
        world.config_path(host)?.display().to_string(),
    );
    world.run(host, &["sh", "-c", SCRIPT, &baton, &config])?;
    Ok(())
}

/// The recorded layout number of a map, in the form of bpftool's bytes.
fn layout(world: &World, host: &str, map: &str) -> Result<String> {
    let record = record(world, host);
    let record = record.display().to_string();
    let key = key(map);
    let mut words = vec![
        "bpftool", "-j", "map", "lookup", "pinned", &record, "key", "hex",
    ];
    words.extend(key.iter().map(String::as_str));
    let said: serde_json::Value = serde_json::from_str(&world.run(host, &words)?)?;
    let bytes = said["value"].as_array().context("bpftool shows no value")?;
    let bytes = bytes
        .iter()
        .filter_map(|byte| byte.as_str()?.strip_prefix("0x"));
    Ok(bytes.collect::<Vec<_>>().join(" "))
}

fn set_layout(world: &World, host: &str, map: &str, number: &str) -> Result<()> {
    let record = record(world, host).display().to_string();
    let key = key(map);
    let mut words = vec!["bpftool", "map", "update", "pinned", &record, "key", "hex"];
    words.extend(key.iter().map(String::as_str));
    words.extend(["value", "hex"]);
    words.extend(number.split(' '));
    world.run(host, &words).map(drop)
}

fn record(world: &World, host: &str) -> PathBuf {
    let lab = world.lab.lab().name().as_str().to_owned();
    PathBuf::from("/sys/fs/bpf/baton-lab")
        .join(lab)
        .join(host)
        .join("layouts")
}

/// The key of a map's record: the map's name, padded with zeros to 16 bytes.
fn key(map: &str) -> Vec<String> {
    let bytes = map.bytes().chain(std::iter::repeat(0)).take(16);
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

fn quit() -> String {
    "QUIT".to_owned()
}
