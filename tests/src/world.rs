//! A scenario's lab while it is up, and the state that its steps share.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use baton_lab::Running;
use serde_json::Value;
use tempfile::TempDir;
use toml::Table;

use crate::slowness;
use crate::step::clients::background::running::Background;
use crate::step::operations::service_manager::Manager;
use crate::step::operations::started_node::StartedNode;

/// The cluster address of every lab.
pub const CLUSTER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 100);

/// Counters by name.
pub type Counters = BTreeMap<String, u64>;

/// Counters at the last `mark`, by host.
pub type Marks = BTreeMap<String, Counters>;

/// Which data server answers each client address.
pub type Clients = BTreeMap<Ipv4Addr, String>;

/// A host's addresses, rules, routes, interfaces with their XDP programs, kernel parameters, pins (which keep the
/// other programs in place) and files, as sets of lines, by the source of the lines.
pub struct Snapshot(pub BTreeMap<String, BTreeSet<String>>);

/// The numbers in /proc/net/sockstat (see proc(5)).
#[derive(Clone, Copy, Debug)]
pub struct Sockets {
    /// The host's sockets of every kind and in every state but TIME_WAIT. A socket counts until its last reference is
    /// gone, so one that a program has leaked counts, which ss(8) does not show.
    pub used: u64,
    /// Pages of TCP buffer memory of the whole machine.
    pub pages: u64,
}

/// The lab and the shared state on which steps act.
pub struct World {
    /// The running lab.
    pub lab: Running,
    /// The path of the program under test.
    pub baton: PathBuf,
    /// A directory for files that steps make.
    pub scratch: TempDir,
    /// Counters at the last `mark`, by host.
    pub marks: Marks,
    /// The lengths of node logs at the last `mark`, in bytes, by file.
    pub logged: BTreeMap<PathBuf, u64>,
    /// What `snapshot` recorded, by host.
    pub snapshots: BTreeMap<String, Snapshot>,
    /// What `count-sockets` counted, by host.
    pub sockets: BTreeMap<String, Sockets>,
    /// The nodes that steps started, by host.
    pub nodes: BTreeMap<String, StartedNode>,
    /// The service managers that steps started, by host.
    pub managers: BTreeMap<String, Manager>,
    /// The hosts whose daemon or TLS agent was killed at least once.
    pub killed: BTreeSet<String>,
    /// The clients that `begin` started and that no `finish` has ended yet.
    pub background: Option<Background>,
    /// The results of every `sticky`.
    pub clients: Vec<Clients>,
    /// The cluster's key at the time the lab was raised.
    pub key: String,
}

impl World {
    /// Makes a scenario's world, just after its lab is up.
    ///
    /// # Errors
    /// A file cannot be made or read.
    pub fn new(lab: Running, baton: PathBuf) -> Result<World> {
        let mut world = World {
            lab,
            baton,
            scratch: tempfile::tempdir()?,
            marks: Marks::new(),
            logged: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            sockets: BTreeMap::new(),
            nodes: BTreeMap::new(),
            managers: BTreeMap::new(),
            killed: BTreeSet::new(),
            background: None,
            clients: Vec::new(),
            key: String::new(),
        };
        if let Some(host) = world.hosts_with("node").first() {
            let config = world.config(host)?;
            let key = config
                .get("cluster")
                .and_then(|cluster| cluster.get("key")?.as_str());
            world.key = key.unwrap_or_default().to_owned();
        }
        Ok(world)
    }

    /// The directory of a host's files.
    ///
    /// # Errors
    /// The lab has no such host.
    pub fn directory(&self, host: &str) -> Result<PathBuf> {
        Ok(self.lab.host(host)?.directory)
    }

    /// The log file of a program that runs on a host, such as its node.
    ///
    /// # Errors
    /// The lab has no such host.
    pub fn log_path(&self, host: &str, of: &str) -> Result<PathBuf> {
        Ok(self.directory(host)?.join(format!("{of}.log")))
    }

    /// The path of a node's configuration file.
    ///
    /// # Errors
    /// The lab has no such host.
    pub fn config_path(&self, host: &str) -> Result<PathBuf> {
        Ok(self.directory(host)?.join("baton.toml"))
    }

    /// Reads a node's configuration.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn config(&self, host: &str) -> Result<Table> {
        let path = self.config_path(host)?;
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        Ok(text.parse()?)
    }

    /// Fills the lab's words into a step's text: `{dir}` is the host's directory, `{baton}` the program under test,
    /// `{repository}` the directory of its sources, `{key}` the cluster's first key.
    ///
    /// # Errors
    /// The lab has no such host.
    pub fn fill(&self, host: &str, text: &str) -> Result<String> {
        let directory = self.directory(host)?;
        Ok(text
            .replace("{dir}", &directory.display().to_string())
            .replace("{baton}", &self.baton.display().to_string())
            .replace("{repository}", concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
            .replace("{key}", &self.key))
    }

    /// A command on a host that is killed when it takes too long.
    ///
    /// # Errors
    /// The lab has no such host.
    pub fn command(&self, host: &str, limit: Duration) -> Result<Command> {
        let mut command = self.lab.exec(host)?;
        command
            // A load that is told to end early needs time to report: it walks tens of megabytes of latencies, perhaps
            // beside a thousand other processes.
            .args(["timeout", "-k", "60"])
            .arg(format!("{}s", limit.as_secs_f64()));
        Ok(command)
    }

    /// Runs a command on a host and returns its output, whatever its exit status is.
    ///
    /// # Errors
    /// The command cannot be run at all.
    pub fn try_run(&self, host: &str, words: &[&str]) -> Result<Output> {
        self.try_run_within(host, words, slowness::patience())
    }

    fn try_run_within(&self, host: &str, words: &[&str], limit: Duration) -> Result<Output> {
        let mut command = self.command(host, limit)?;
        command
            .args(words)
            .output()
            .with_context(|| format!("cannot run {words:?} on {host}"))
    }

    /// Runs a command on a host and returns what it prints.
    ///
    /// # Errors
    /// The command fails.
    pub fn run(&self, host: &str, words: &[&str]) -> Result<String> {
        self.run_within(host, words, slowness::patience())
    }

    /// Runs a command like [`World::run`], with another time limit.
    ///
    /// # Errors
    /// The command fails.
    pub fn run_within(&self, host: &str, words: &[&str], limit: Duration) -> Result<String> {
        let output = self.try_run_within(host, words, limit)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!(
                "`{}` on {host}: {}\n{text}{errors}",
                words.join(" "),
                output.status
            );
        }
        Ok(text)
    }

    /// Runs `baton VERB --config …` for the node of a host.
    ///
    /// # Errors
    /// The command cannot be run at all.
    pub fn baton(&self, host: &str, verb: &[&str]) -> Result<Output> {
        let (program, config) = (
            self.baton.display().to_string(),
            self.config_path(host)?.display().to_string(),
        );
        let words = [&[program.as_str()], verb, &["--config", &config]].concat();
        self.try_run(host, &words)
    }

    /// What `baton status --json` reports on a host.
    ///
    /// # Errors
    /// The host's node does not answer.
    pub fn status(&self, host: &str) -> Result<Value> {
        let output = self.baton(host, &["status", "--json"])?;
        if !output.status.success() {
            bail!(
                "baton status on {host}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// A node's counters.
    ///
    /// # Errors
    /// The node does not answer.
    pub fn counters(&self, host: &str) -> Result<Counters> {
        Ok(serde_json::from_value(
            self.status(host)?["counters"].take(),
        )?)
    }

    /// The hosts on which the lab runs `thing`, such as "node".
    pub fn hosts_with(&self, thing: &str) -> Vec<String> {
        let hosts = self.lab.lab().hosts().iter();
        hosts
            .filter(|host| host.thing(thing).is_some())
            .map(|host| host.name.as_str().to_owned())
            .collect()
    }

    /// Ends what steps started, so that the lab can go down. Returns the errors of that.
    pub fn end(&mut self) -> Vec<anyhow::Error> {
        let hosts: Vec<String> = (self.nodes.keys())
            .chain(self.managers.keys())
            .cloned()
            .collect();
        let mut errors = Vec::new();
        if let Some(background) = self.background.take() {
            background.abandon();
        }
        for host in hosts {
            drop(self.managers.remove(&host));
            if let Some(started) = self.nodes.remove(&host) {
                errors.extend(started.kill().err());
            }
            match self.baton(&host, &["teardown"]) {
                Ok(output) if output.status.success() => {}
                Ok(output) => errors.push(anyhow::anyhow!(
                    "teardown on {host}: {}",
                    String::from_utf8_lossy(&output.stderr)
                )),
                Err(error) => errors.push(error),
            }
        }
        errors
    }
}
