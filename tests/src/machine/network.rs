//! The machines' network: a namespace with a bridge, and a tap device with several queues for each interface.

use std::fs::File;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use nix::fcntl::{Flock, FlockArg};

/// The namespace's name. Only one set of machines runs at a time.
const NAMESPACE: &str = "baton-machines";

/// The lock file. The process that holds it owns the namespace.
const LOCK: &str = "/run/lock/baton-machines.lock";

/// The network, which exists as long as this value.
pub(super) struct Network {
    _lock: Flock<File>,
}

impl Network {
    /// Makes the network, with a tap of each of these names. Before that, it removes what an earlier run left behind
    /// because it was killed.
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

    /// A command that runs in the namespace, and is killed when this thread ends, for whatever reason.
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

/// Removes the namespace, if it exists. Taps and bridge disappear with it, once no process runs in it.
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
