//! A cluster of one connection server, fifteen data servers that each have a small part of a processor, an aware
//! client and a plain one. For each number of data servers that is measured there is a service with that many.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use baton_lab::BRIDGE;

use super::usage::{self, Usage};
use crate::bpf::{self, ProgramType};
use crate::cpu::CpuTime;
use crate::lab::BenchLab;
use crate::options::Options;
use crate::wrk::Target;

/// The numbers of data servers, in the order of the turns of a round. The others are compared with the first one.
pub(super) const SERVERS: [u32; 7] = [1, 2, 4, 6, 8, 12, 15];
/// The cluster addresses of the services, in the order of [`SERVERS`].
const ADDRESSES: [&str; SERVERS.len()] = [
    "10.77.0.101",
    "10.77.0.102",
    "10.77.0.104",
    "10.77.0.106",
    "10.77.0.108",
    "10.77.0.112",
    "10.77.0.115",
];
/// The part of one processor that all programs on a data server together may use.
pub(super) const QUOTA: f64 = 0.03;
/// A pause that is longer than the period of a quota.
pub(super) const PAUSE: Duration = Duration::from_millis(500);

const CONNECTION_SERVER: &str = "cs1";
const BPF_DIR: &str = "/sys/fs/bpf/baton-lab/bench-direct/client-agent";

/// The kind of client: an aware one sends to its data servers itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Aware,
    Plain,
}

impl Kind {
    pub const ALL: [Kind; 2] = [Kind::Aware, Kind::Plain];

    /// The host on which the client runs.
    pub fn host(self) -> &'static str {
        match self {
            Kind::Aware => "aware",
            Kind::Plain => "plain",
        }
    }
}

/// The service that has this many data servers.
pub(super) fn target(servers: u32) -> Result<Target> {
    let at = SERVERS.iter().position(|one| *one == servers);
    let at = at.with_context(|| format!("no service has {servers} data servers"))?;
    Ok(Target::new("baton", &ADDRESSES[at..=at], 80))
}

pub(super) struct Cluster {
    lab: BenchLab,
    /// The thread that polls the connection server's interface, and does nothing else.
    receiving: u32,
    servers: Vec<Server>,
}

/// The processes that work at a data server.
struct Server {
    nginx: u32,
    /// The thread that polls the data server's interface.
    receiving: u32,
}

impl Cluster {
    pub fn raise(options: &Options) -> Result<Cluster> {
        let lab = BenchLab::raise_from(&file(), options)?;
        poll_by_thread(&lab, BRIDGE, CONNECTION_SERVER)?;
        let receiving = poll_by_thread(&lab, CONNECTION_SERVER, "eth0")?;
        let servers = names().map(|server| {
            // If the other end of the veth sent large segments (TSO), the interface would not be polled.
            lab.said(BRIDGE, &["ethtool", "-K", &server, "tso", "off"])?;
            lab.said(&server, &["ethtool", "-K", "eth0", "gro", "on"])?;
            let receiving = poll_by_thread(&lab, &server, "eth0")?;
            let nginx = lab.process(&server, "nginx")?;
            usage::join(receiving, nginx)?;
            Ok(Server { nginx, receiving })
        });
        let servers = servers.collect::<Result<_>>()?;
        let cluster = Cluster {
            lab,
            receiving,
            servers,
        };
        let services = ADDRESSES.map(|address| format!("--service={address}:80"));
        let attach = [
            "client-agent",
            "attach",
            "--interface=eth0",
            "--bpf-dir",
            BPF_DIR,
        ];
        let words = [&attach[..], &services.each_ref().map(String::as_str)].concat();
        cluster.lab.baton(Kind::Aware.host(), &words)?;
        Ok(cluster)
    }

    pub fn lab(&self) -> &BenchLab {
        &self.lab
    }

    /// Reads the usage so far, for the first `servers` data servers.
    pub fn usage(&self, servers: u32) -> Result<Usage> {
        let servers = self.servers.iter().take(servers as usize).map(|server| {
            Ok(usage::seconds_of_all(server.nginx)? + usage::seconds(server.receiving)?)
        });
        let runs = bpf::runs_at(&self.lab, CONNECTION_SERVER, ProgramType::Xdp)?;
        Ok(Usage {
            packets: runs.count,
            program: runs.nanos as f64 / 1e9,
            receiving: usage::seconds(self.receiving)?,
            daemon: usage::seconds(self.lab.daemon(CONNECTION_SERVER)?)?,
            servers: servers.sum::<Result<f64>>()?,
            machine: CpuTime::now()?.seconds() / processors()?,
        })
    }

    /// The number of the aware client's connections that were told where their data server is.
    pub fn made_aware(&self) -> Result<u64> {
        let words = ["client-agent", "status", "--bpf-dir", BPF_DIR];
        let said = self.lab.baton(Kind::Aware.host(), &words)?;
        let told = said
            .lines()
            .find_map(|line| line.strip_prefix("client_told "));
        let told = told.with_context(|| format!("the client agent counts otherwise: {said}"))?;
        Ok(told.parse()?)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if Path::new(BPF_DIR).exists()
            && let Err(error) = std::fs::remove_dir_all(BPF_DIR)
        {
            eprintln!("bench: {BPF_DIR} stays: {error}");
        }
    }
}

/// The names of the data servers.
fn names() -> impl Iterator<Item = String> {
    let most = SERVERS.into_iter().max().unwrap_or_default();
    (1..=most).map(|number| format!("ds{number}"))
}

fn processors() -> Result<f64> {
    let count = std::thread::available_parallelism().context("count the processors")?;
    Ok(count.get() as f64)
}

/// Has a thread of the kernel poll an interface, so that the processing of packets that arrive there is charged to
/// this thread and not to their sender. Otherwise it would be charged elsewhere: at the connection server to the
/// client; at the other end of its cable to the connection server, with all that follows there; at the data servers to
/// an aware client or, for a plain one, to the connection server, and never to the data servers' quotas. Returns the
/// thread.
fn poll_by_thread(lab: &BenchLab, host: &str, interface: &str) -> Result<u32> {
    let before = usage::polling_threads(interface)?;
    // Only a sysfs that is mounted in the namespace shows the namespace's interfaces.
    let script = "mount -t sysfs sysfs /sys; echo 1 > /sys/class/net/$0/threaded";
    lab.said(
        host,
        &["unshare", "--mount", "sh", "-ec", script, interface],
    )?;
    let mut now = usage::polling_threads(interface)?;
    now.retain(|thread| !before.contains(thread));
    match now[..] {
        [thread] => Ok(thread),
        _ => bail!(
            "{} threads poll {interface} of {host}, and not one",
            now.len()
        ),
    }
}

fn file() -> String {
    let mut text = String::from("name = \"bench-direct\"\n");
    let mut host = |name: &str, address: u32, more: &str| {
        text +=
            &format!("[[host]]\nname = \"{name}\"\naddress = \"10.77.0.{address}/24\"\n{more}\n");
    };
    host(Kind::Aware.host(), 1, "");
    host(Kind::Plain.host(), 5, "");
    host(CONNECTION_SERVER, 2, "roles = [\"cs\"]\nrun = [\"node\"]");
    for (number, name) in (1..).zip(names()) {
        let more = format!("roles = [\"ds\"]\nrun = [\"node\", \"nginx\"]\ncpu = {QUOTA}");
        host(&name, 10 + number, &more);
    }
    for (servers, address) in SERVERS.into_iter().zip(ADDRESSES) {
        let nodes: Vec<String> = (1..=servers)
            .map(|number| format!("\"ds{number}\""))
            .collect();
        text += &format!(
            "[[config.service]]\nname = \"of{servers}\"\naddress = \"{address}\"\nport = 80\n\
             policy = \"round-robin\"\ndirect = true\nnodes = [{}]\n",
            nodes.join(", ")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_file_is_a_lab() {
        let lab = baton_lab::Lab::parse(&file()).expect("a lab");
        assert_eq!(lab.hosts().len(), 18);
        assert!(target(15).is_ok() && target(3).is_err());
    }
}
