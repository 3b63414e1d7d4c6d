//! The demonstration's lab, which is taken down however the demonstration ends.

use std::fs::{File, OpenOptions};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use baton_lab::{HostView, Lab, Options, Running};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::progress::Progress;
use baton_node::control::status;
use baton_node::status::Status;

/// The lab file that scripts and people also use. The demonstration gives its lab another name, so that both labs can
/// be up at the same time.
const SPLIT: &str = include_str!("../../../labs/split.toml");
const LOCK: &str = "/run/lock/baton-demo.lock";

/// How often taking the lab down is tried: Ctrl-C also reaches the tools that take it down, and ends them.
const TRIES: usize = 3;

/// The lab while it is up.
pub struct Stage {
    lab: Option<Running>,
    /// The host without a role.
    pub client: HostView,
    /// The host with role "cs".
    pub cs: HostView,
    /// The hosts with role "ds".
    pub servers: Vec<HostView>,
    /// How long each program may take.
    pub timeout: Duration,
    _only: Flock<File>,
}

impl Stage {
    /// Raises the lab. First it removes what an earlier demonstration left behind because it was killed.
    pub fn raise(progress: &Progress, timeout: Duration) -> Result<Stage> {
        let only = lock()?;
        let lab = lab()?;
        baton_lab::down(lab.name(), |_| {}).context("cannot clear an earlier demonstration")?;
        let baton = std::env::current_exe().context("cannot find this program's own path")?;
        let options = Options {
            baton,
            patience: timeout,
        };
        let up = lab.up(&options, |step| progress.detail(step))?;
        let guard = Down(Some(up.clone()));
        let hosts = up.hosts()?;
        let with = |role: &str| -> Vec<HostView> {
            let has = |host: &&HostView| host.roles.contains(&role);
            hosts.iter().filter(has).cloned().collect()
        };
        let client = hosts
            .iter()
            .find(|host| host.roles.is_empty() && !host.addresses.is_empty());
        let (Some(client), Some(cs), servers) = (client, with("cs").pop(), with("ds")) else {
            bail!("labs/split.toml has no client or no connection server");
        };
        let client = client.clone();
        guard.keep();
        Ok(Stage {
            lab: Some(up),
            client,
            cs,
            servers,
            timeout,
            _only: only,
        })
    }

    /// The lab.
    pub fn lab(&self) -> Result<&Running> {
        self.lab.as_ref().context("the lab is down")
    }

    /// The status of the connection server's node.
    pub fn status(&self) -> Result<Status> {
        let config: PathBuf = self.cs.directory.join("baton.toml");
        Ok(*status(&config)?)
    }

    /// Takes the lab down.
    pub fn down(mut self) -> Result<()> {
        take_down(self.lab.take())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Err(error) = take_down(self.lab.take()) {
            eprintln!("baton: {error:#}");
        }
    }
}

/// Takes the lab down unless it is kept.
struct Down(Option<Running>);

impl Down {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Down {
    fn drop(&mut self) {
        if let Err(error) = take_down(self.0.take()) {
            eprintln!("baton: {error:#}");
        }
    }
}

fn take_down(lab: Option<Running>) -> Result<()> {
    let Some(lab) = lab else { return Ok(()) };
    let mut tries = 1;
    loop {
        match lab.clone().down() {
            Ok(down) if down.warnings.is_empty() => return Ok(()),
            Ok(down) => bail!("the lab is down, but: {}", down.warnings.join("; ")),
            Err(_) if tries < TRIES => tries += 1,
            Err(error) => {
                return Err(error).context("try again with `baton lab down --lab demo`");
            }
        }
    }
}

fn lab() -> Result<Lab> {
    let text = SPLIT.replacen("name = \"split\"", "name = \"demo\"", 1);
    Lab::parse(&text).context("labs/split.toml")
}

/// Takes a lock, so that only one demonstration runs at a time.
fn lock() -> Result<Flock<File>> {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(LOCK)
        .with_context(|| format!("cannot open {LOCK}: are you root?"))?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(lock),
        Err((_, Errno::EWOULDBLOCK)) => bail!("another demonstration runs on this machine"),
        Err((_, errno)) => Err(errno).with_context(|| format!("cannot lock {LOCK}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lab_is_split_under_another_name() -> Result<()> {
        let lab = lab()?;
        assert_eq!(lab.name().as_str(), "demo");
        let names: Vec<&str> = lab.hosts().iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["client", "cs1", "ds1", "ds2", "ds3"]);
        Ok(())
    }
}
