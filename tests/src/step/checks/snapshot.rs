//! Steps that compare what a node may change of its host, before and after.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use crate::world::{Snapshot, World};

/// Remembers a host's state.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Take {
    on: String,
}

/// Checks that a host's state is the remembered one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unchanged {
    on: String,
}

/// Checks that a host's state differs where it must: otherwise `unchanged` would prove nothing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changed {
    on: String,
    /// The parts of the snapshot that must differ: commands, "/proc/sys/net", "pins", "files".
    parts: Vec<String>,
}

impl Take {
    /// Runs the step.
    ///
    /// # Errors
    /// A tool is missing.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let snapshot = Snapshot::of(world, &self.on)?;
        world.snapshots.insert(self.on.clone(), snapshot);
        Ok(())
    }
}

impl Unchanged {
    /// Runs the step.
    ///
    /// # Errors
    /// The state differs.
    pub fn run(&self, world: &mut World) -> Result<()> {
        remembered(world, &self.on)?.compare(&Snapshot::of(world, &self.on)?)
    }
}

impl Changed {
    /// Runs the step.
    ///
    /// # Errors
    /// A part is unchanged.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let (before, after) = (remembered(world, &self.on)?, Snapshot::of(world, &self.on)?);
        for part in &self.parts {
            let same = before.0.get(part) == after.0.get(part);
            ensure!(!same, "{part} is as it was: {:?}", after.0.get(part));
        }
        Ok(())
    }
}

fn remembered<'a>(world: &'a World, host: &str) -> Result<&'a Snapshot> {
    let snapshot = world.snapshots.get(host);
    snapshot.with_context(|| format!("no step remembered {host}"))
}

const COMMANDS: [&str; 7] = [
    "ip -o address show",
    // This also shows the interface's XDP program, if there is one.
    "ip -o -d link show",
    "ip rule show",
    "ip route show table all",
    "tc qdisc show",
    "tc filter show dev eth0 ingress",
    "nft list ruleset",
];

/// Files of /proc/sys/net that hold no settings, such as counts of what the kernel holds at the moment.
const VOLATILE: [&str; 4] = [
    "nf_conntrack_count",
    "dentry-state",
    "file-nr",
    "route/flush",
];

impl Snapshot {
    /// Takes a snapshot of a host.
    ///
    /// # Errors
    /// A tool is missing.
    pub fn of(world: &World, host: &str) -> Result<Snapshot> {
        let mut all = BTreeMap::new();
        for command in COMMANDS {
            let words: Vec<&str> = command.split(' ').collect();
            all.insert(command.to_owned(), lines(&world.run(host, &words)?));
        }
        let settings = world.lab.within(host, || {
            let mut settings = BTreeSet::new();
            parameters(Path::new("/proc/sys/net"), &mut settings);
            settings
        })?;
        all.insert("/proc/sys/net".to_owned(), settings);
        let lab = world.lab.lab().name().as_str();
        let pins = Path::new("/sys/fs/bpf/baton-lab").join(lab).join(host);
        all.insert("pins".to_owned(), tree(&pins));
        all.insert(
            "files".to_owned(),
            sockets_and_journal(&world.directory(host)?),
        );
        Ok(Snapshot(all))
    }

    /// Compares this snapshot with a later one.
    ///
    /// # Errors
    /// The snapshots differ; the error lists every line that came or went.
    pub fn compare(&self, later: &Snapshot) -> Result<()> {
        let mut differences = Vec::new();
        for (what, before) in &self.0 {
            let after = &later.0[what];
            differences.extend(
                before
                    .difference(after)
                    .map(|line| format!("{what}: gone: {line}")),
            );
            differences.extend(
                after
                    .difference(before)
                    .map(|line| format!("{what}: new: {line}")),
            );
        }
        if differences.is_empty() {
            return Ok(());
        }
        bail!("the host is not as it was:\n{}", differences.join("\n"))
    }
}

fn lines(text: &str) -> BTreeSet<String> {
    text.lines().map(str::to_owned).collect()
}

fn parameters(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            parameters(&path, found);
        } else if !VOLATILE.iter().any(|name| path.ends_with(name)) {
            // Some parameters can only be written.
            let value = std::fs::read_to_string(&path).unwrap_or_default();
            found.insert(format!("{} = {}", path.display(), value.trim()));
        }
    }
}

fn tree(directory: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        found.insert(entry.path().display().to_string());
        found.extend(tree(&entry.path()));
    }
    found
}

/// The files that a node keeps in its run_dir. Logs and the files of the lab are left out, because they may grow.
fn sockets_and_journal(directory: &Path) -> BTreeSet<String> {
    let names = ["control.sock", "undo.json"];
    names
        .iter()
        .filter(|name| directory.join(name).exists())
        .map(|name| (*name).to_owned())
        .collect()
}
