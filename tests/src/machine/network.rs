//! The network that machines are on: a namespace with a bridge, and a tap with several queues for each interface.

use std::fs::File;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use nix::fcntl::{Flock, FlockArg};

/// The namespace. One set of machines runs at a time.
const NAMESPACE: &str = "baton-machines";

/// Who holds it owns the namespace.
const LOCK: &str = "/run/lock/baton-machines.lock";

/// It is there as long as this is.
pub(super) struct Network {
    _lock: Flock<File>,
}

impl Network {
    /// Makes it, with a tap of each of these names. What an earlier run left, because it was killed, is removed
    /// before.
    pub fn create(taps: &[String]) -> Result<Network> {
        let file = File::create(LOCK).with_context(|| format!("cannot open {LOCK}"))?;
        let Ok(lock) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else {
            bail!("other machines run here already ({LOCK} is locked): wait for them");
        };
        let network = Network { _lock: lock };
        remove();
        ip(&["netns", "add", NAMESPACE])?;
        network.fill(taps)?;
        Ok(network)
    }

    fn fill(&self, taps: &[String]) -> Result<()> {
        let inside = ["-n", NAMESPACE];
        let ip = |words: &str| {
            let words: Vec<&str> = inside.into_iter().chain(words.split(' ')).collect();
            ip(&words)
        };
        ip("link add br0 type bridge forward_delay 0 mcast_snooping 0")?;
        ip("link set br0 up")?;
        for tap in taps {
            ip(&format!(
                "tuntap add dev {tap} mode tap multi_queue vnet_hdr"
            ))?;
            ip(&format!("link set {tap} master br0 up"))?;
        }
        Ok(())
    }

    /// A command that runs in it, and is killed when this thread ends, however that comes about.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", NAMESPACE]);
        command.args(["setpriv", "--pdeathsig", "KILL", program]);
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        remove();
    }
}

/// Removes the namespace, if it is there; taps and bridge go with it, once nothing runs there.
pub(super) fn remove() {
    if std::path::Path::new("/run/netns").join(NAMESPACE).exists()
        && let Err(error) = ip(&["netns", "del", NAMESPACE])
    {
        eprintln!("machines: {error:#}");
    }
}

fn ip(words: &[&str]) -> Result<()> {
    let output = Command::new("ip").args(words).output();
    let output = output.context("cannot run `ip`")?;
    ensure!(
        output.status.success(),
        "`ip {}`: {}",
        words.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
