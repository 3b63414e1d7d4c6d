//! Steps that start and end nodes on hosts where the lab runs none.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use baton_lab::Signal;
use serde::Deserialize;
use toml::Table;

use super::config::changed;
use super::started_node::StartedNode;
use crate::slowness::patience;
use crate::world::World;

/// Starts `baton node`. Its configuration is that of another node, except for what belongs to the host.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartNode {
    on: String,
    /// The host whose configuration is copied.
    like: String,
    /// Changes to the copied configuration.
    #[serde(default)]
    set: Table,
}

/// Ends a node that a step started. Its exit status must be 0, unless the signal is "KILL".
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopNode {
    on: String,
    signal: String,
}

/// Runs `baton teardown` a number of times.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Teardown {
    on: String,
    #[serde(default = "crate::step::clients::get::once")]
    times: usize,
}

impl StartNode {
    /// The host on which the node is to run.
    pub fn host(&self) -> &str {
        &self.on
    }

    /// The host whose configuration is copied.
    pub fn like(&self) -> &str {
        &self.like
    }

    /// The configuration that the node is to have.
    ///
    /// # Errors
    /// The lab has no such host.
    pub fn config(&self, world: &World) -> Result<Table> {
        config_like(world, &self.like, &self.on, &self.set)
    }

    /// Runs the step.
    ///
    /// # Errors
    /// The node does not become ready.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let config = self.config(world)?;
        let directory = world.directory(&self.on)?;
        let path = directory.join("baton.toml");
        write_secret(&path, &config.to_string())?;
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(directory.join("node.log"))?;
        let mut command = world.lab.exec(&self.on)?;
        command
            .arg(&world.baton)
            .args(["node", "--config"])
            .arg(&path);
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let mut started = StartedNode(Some(child));
        let socket = directory.join("control.sock");
        let end = Instant::now() + patience();
        while UnixStream::connect(&socket).is_err() {
            if let Some(status) = started.ended()? {
                bail!("the node has ended with {status}");
            }
            ensure!(
                Instant::now() < end,
                "the node is not ready after {:?}",
                patience()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        world.nodes.insert(self.on.clone(), started);
        Ok(())
    }
}

impl StopNode {
    /// Runs the step.
    ///
    /// # Errors
    /// The node does not end, or ends with an error.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let signal: Signal = format!("SIG{}", self.signal)
            .parse()
            .context("no such signal")?;
        let started = world.nodes.get_mut(&self.on);
        let status = started
            .with_context(|| format!("no step started a node on {}", self.on))?
            .end(signal)?;
        ensure!(
            signal == Signal::SIGKILL || status.success(),
            "the node ended with {status}"
        );
        Ok(())
    }
}

impl Teardown {
    /// Runs the step.
    ///
    /// # Errors
    /// The command fails.
    pub fn run(&self, world: &mut World) -> Result<()> {
        for _ in 0..self.times {
            let output = world.baton(&self.on, &["teardown"])?;
            ensure!(
                output.status.success(),
                "baton teardown: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(())
    }
}

/// Turns the configuration of the node `like` into one for `host`.
///
/// # Errors
/// The lab has no such host.
pub fn config_like(world: &World, like: &str, host: &str, set: &Table) -> Result<Table> {
    let mut config = world.config(like)?;
    let bpf = Path::new("/sys/fs/bpf/baton-lab")
        .join(world.lab.lab().name().as_str())
        .join(host);
    let local = Table::from_iter([
        ("name".to_owned(), host.into()),
        ("bpf_dir".to_owned(), bpf.display().to_string().into()),
        (
            "run_dir".to_owned(),
            world.directory(host)?.display().to_string().into(),
        ),
        // Every machine has this user.
        ("tls_user".to_owned(), "nobody".into()),
    ]);
    config.insert("local".to_owned(), local.into());
    changed(world, host, config, set)
}

/// Writes a file that holds the cluster's key.
///
/// # Errors
/// The file system refuses.
pub fn write_secret(path: &Path, text: &str) -> Result<()> {
    OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}
