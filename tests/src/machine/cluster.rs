//! The cluster of machines, which is started once for all checks.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::guest::{Disk, Guest, Hardware, Nic};
use super::network::Network;

/// The directory of the machines' sockets and consoles.
pub(super) const DIRECTORY: &str = "/run/baton-machines";

/// The names of the connection servers.
pub(super) const CONNECTION_SERVERS: [&str; 2] = ["cs1", "cs2"];

/// The names of the data servers.
pub(super) const DATA_SERVERS: [&str; 2] = ["ds1", "ds2"];

/// The configuration with which each node starts.
pub(super) const CONFIG: &str = include_str!("../../machines/guest/etc/baton/baton.toml");

/// How long it may take until all nodes of the cluster have heard of a change.
const SETTLES: Duration = Duration::from_secs(900);

/// The running machines. They end, and their network is removed, when this is dropped.
pub struct Cluster {
    // The order matters: fields are dropped from top to bottom, and the network has to go last.
    guests: Vec<Guest>,
    network: Option<Network>,
}

impl Cluster {
    /// Switches all machines on, and waits until the cluster serves.
    ///
    /// # Errors
    /// A machine does not come up.
    pub fn up(release: &str, baton: &Path, client: &Path) -> Result<Cluster> {
        let begun = Instant::now();
        let disk = image(release, baton, client)?;
        let _ = std::fs::remove_dir_all(DIRECTORY);
        std::fs::create_dir_all(DIRECTORY)?;
        let machines = machines();
        let taps: Vec<String> = (machines.iter())
            .flat_map(|machine| machine.nics.iter().map(|nic| nic.tap.clone()))
            .collect();
        let network = Network::create(&taps)?;
        let start = |machine| Guest::start(machine, &disk, &network, Path::new(DIRECTORY));
        let mut guests: Vec<Guest> = machines.iter().map(start).collect::<Result<_>>()?;
        for guest in &mut guests {
            guest.wait_for_boot()?;
            eprintln!(
                "machines: {} is up after {:.0?}",
                guest.name,
                begun.elapsed()
            );
        }
        let mut cluster = Cluster {
            guests,
            network: Some(network),
        };
        cluster.wait_until_served()?;
        eprintln!("machines: the cluster serves after {:.0?}", begun.elapsed());
        Ok(cluster)
    }

    /// Attaches to the machines that another process has left up.
    ///
    /// # Errors
    /// No such machines are up.
    pub fn attach() -> Result<Cluster> {
        let attach = |machine: &Hardware| Guest::attach(machine.name, Path::new(DIRECTORY));
        let guests = machines().iter().map(attach).collect::<Result<_>>();
        let mut cluster = Cluster {
            guests: guests.context("no machines have been left up")?,
            network: None,
        };
        for guest in &mut cluster.guests {
            guest.wait_for_boot()?;
        }
        cluster.wait_until_served()?;
        Ok(cluster)
    }

    /// A machine by its name.
    pub(super) fn guest(&mut self, name: &str) -> Result<&mut Guest> {
        let found = self.guests.iter_mut().find(|guest| guest.name == name);
        found.with_context(|| format!("there is no machine {name}"))
    }

    /// Runs a shell command in a machine and returns what it prints. A command that fails is an error.
    pub(super) fn run(&mut self, on: &str, command: &str) -> Result<String> {
        self.guest(on)?.run(command)
    }

    /// Leaves the machines up, for anyone who wants a shell in one, until this process is ended.
    pub fn keep(mut self) {
        self.guests.iter_mut().for_each(Guest::release);
        eprintln!("machines: left up: tests/machines/shell NAME is a shell in one; ^C ends them");
        loop {
            std::thread::park();
        }
    }

    /// What `baton status --json` reports on a node.
    pub(super) fn status(&mut self, on: &str) -> Result<Value> {
        let text = self.run(on, "baton status --json --config /etc/baton/baton.toml")?;
        serde_json::from_str(&text).with_context(|| format!("the status of {on} is {text:?}"))
    }

    /// A counter of a node.
    pub(super) fn counter(&mut self, on: &str, name: &str) -> Result<u64> {
        let status = self.status(on)?;
        Ok(status["counters"][name].as_u64().unwrap_or(0))
    }

    /// The sum of a counter over all connection servers.
    pub(super) fn at_connection_servers(&mut self, name: &str) -> Result<u64> {
        let mut sum = 0;
        for on in CONNECTION_SERVERS {
            sum += self.counter(on, name)?;
        }
        Ok(sum)
    }

    /// The name of the connection server that is in front.
    pub(super) fn front(&mut self) -> Result<&'static str> {
        for on in CONNECTION_SERVERS {
            if self.status(on)?["failover"]["state"] == "front" {
                return Ok(on);
            }
        }
        bail!("no connection server is in front")
    }

    /// Waits until one connection server is in front and the other on standby, both give requests to both data
    /// servers, and the client is served.
    pub(super) fn wait_until_served(&mut self) -> Result<()> {
        self.wait(|cluster| {
            let mut states = Vec::new();
            for on in CONNECTION_SERVERS {
                let status = cluster.status(on)?;
                let services = status["services"].as_array();
                for service in services.with_context(|| format!("{on} has no services"))? {
                    let (name, taking) = (&service["name"], &service["taking"]);
                    ensure!(
                        *taking == serde_json::json!(DATA_SERVERS),
                        "{on} gives requests for {name} to {taking}"
                    );
                }
                states.push(status["failover"]["state"].as_str().map(str::to_owned));
            }
            states.sort();
            ensure!(
                states == [Some("front".into()), Some("standby".into())],
                "of failover: {states:?}"
            );
            cluster
                .run("client", "curl -sS -m 60 --fail http://10.77.0.100/whoami")
                .map(drop)
        })
    }

    /// Calls `holds` until it succeeds.
    pub(super) fn wait(&mut self, holds: impl Fn(&mut Cluster) -> Result<()>) -> Result<()> {
        let end = Instant::now() + SETTLES;
        loop {
            match holds(self) {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > end => {
                    return Err(error.context(format!("after {SETTLES:?} still")));
                }
                // Pause between attempts, because asking takes processor time from the machines.
                Err(_) => std::thread::sleep(Duration::from_secs(4)),
            }
        }
    }

    /// The last lines that the nodes logged.
    pub fn logs(&mut self) -> String {
        let mut logs = String::new();
        for on in CONNECTION_SERVERS.iter().chain(&DATA_SERVERS) {
            let log = self.run(on, "journalctl -q -u baton -n 25 -o cat --no-pager");
            let log = log.unwrap_or_else(|error| format!("{error:#}"));
            logs += &format!("\n{on}:\n{log}");
        }
        logs
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.guests.clear();
        if self.network.is_some() {
            let _ = std::fs::remove_dir_all(DIRECTORY);
        }
    }
}

/// The machines and their hardware. The second interface of cs2 has a driver that must not change its offloads.
fn machines() -> Vec<Hardware> {
    let machine = |name: &'static str, number, memory| Hardware {
        name,
        number,
        memory,
        nics: vec![Nic {
            tap: format!("t-{name}"),
            options: "",
        }],
    };
    let mut all = vec![
        machine("cs1", 2, "640M"),
        machine("cs2", 3, "640M"),
        machine("ds1", 11, "640M"),
        machine("ds2", 12, "640M"),
        machine("client", 1, "512M"),
    ];
    all[1].nics.push(Nic {
        tap: "t-cs2-fixed".into(),
        options: ",ctrl_guest_offloads=off",
    });
    all
}

/// Makes the disk from which all machines boot.
fn image(release: &str, baton: &Path, client: &Path) -> Result<Disk> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("machines/image");
    let output = Command::new(&script)
        .arg(release)
        .args([baton, client])
        .output()
        .with_context(|| format!("cannot run {}", script.display()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{} failed: {errors}",
        script.display()
    );
    let said = String::from_utf8_lossy(&output.stdout);
    let mut lines = said.lines().map(PathBuf::from);
    let (Some(kernel), Some(image)) = (lines.next(), lines.next()) else {
        bail!("{} says {said:?}", script.display());
    };
    Ok(Disk { kernel, image })
}
