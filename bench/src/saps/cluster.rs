//! The two clusters, and the bottleneck between them and their clients: bench/saps/lab.toml, and the settings that a
//! lab file cannot express.

use std::process::Stdio;

use anyhow::{Context as _, Result, bail, ensure};
use baton_lab::Running;

use super::system::{SERVERS, Sender, System};
use crate::lab::BenchLab;
use crate::options::Options;

const LAB: &str = include_str!("../../saps/lab.toml");
/// The text in the lab file that stands for this program.
const PROGRAM: &str = "\"baton-bench\"";

/// The rate of the router's link to the clients, in bits a second. It is a tenth of the paper's rate, so that links
/// and not processors are the limit.
const RATE: u64 = 100_000_000;
/// The rate of the links of io1 and of the servers to the front, as a multiple of [`RATE`]: by default, and under
/// `--wide`.
const OWN: u64 = 1;
const WIDE: u64 = 10;
/// The bytes of a full frame.
const FRAME: u64 = 1514;
/// The number of frames that a link may send at once after a pause. A real wire sends one, but a late timer of the
/// kernel would then leave the link unused.
const BURST: u64 = 10;
/// The number of frames that wait at the router, as in the paper's switch (table 2).
const ROUTER_QUEUE: u64 = 40;
/// The number of frames that wait at a node's own interface, as by Linux's default (txqueuelen).
const OWN_QUEUE: u64 = 1000;

/// The clients, which are at the other end of the bottleneck.
pub(super) const CLIENTS: [&str; 4] = ["client1", "client2", "client3", "client4"];

/// Both clusters, which are up.
pub(super) struct Cluster {
    lab: BenchLab,
}

impl Cluster {
    pub fn raise(options: &Options) -> Result<Cluster> {
        let program = std::env::current_exe().context("find this program")?;
        let text = LAB.replace(PROGRAM, &format!("{:?}", program.display().to_string()));
        let cluster = Cluster {
            lab: BenchLab::raise_from(&text, options)?,
        };
        cluster.join()?;
        cluster.direct()?;
        cluster.narrow(own_rate(options))?;
        Ok(cluster)
    }

    pub fn lab(&self) -> &BenchLab {
        &self.lab
    }

    pub fn running(&self) -> Result<&Running> {
        self.lab.running()
    }

    /// Makes a system use this congestion control from the next connection on, and forget its metrics of clients. The
    /// setting is made by route, because a network namespace may not select for all its sockets what the machine has
    /// not released to it.
    pub fn use_sender(&self, (sender, system): (Sender, System)) -> Result<()> {
        for host in system.senders() {
            let name = sender.name();
            let route = format!("ip route replace default via 10.79.0.254 congctl {name}");
            self.on(host, &route)
                .with_context(|| format!("modprobe tcp_{name}?"))?;
            self.on(host, "ip tcp_metrics flush all")?;
        }
        Ok(())
    }

    /// Sets the routes between the parts. The router sends packets for a cluster's address to the host that must get
    /// them, so no node asks for that address by ARP, and the servers can have it on their loopback interface.
    fn join(&self) -> Result<()> {
        let [saps, virtual_server] = System::ALL.map(System::address);
        self.on("router", &format!("ip route add {saps} via 10.79.0.2"))?;
        self.on(
            "router",
            &format!("ip route add {virtual_server} via 10.79.0.3"),
        )?;
        for server in SERVERS {
            self.on(
                server,
                &format!("ip address add {virtual_server}/32 dev lo"),
            )?;
        }
        Ok(())
    }

    /// Sets up direct routing, as IPVS did it on the paper's Linux: the director gives each connection to the next
    /// server, and sends that server all packets of the client, unchanged except for the MAC address.
    fn direct(&self) -> Result<()> {
        let director = "director";
        self.sysctl(director, "net/ipv4/conf/all/send_redirects", "0")?;
        self.sysctl(director, "net/ipv4/conf/eth0/send_redirects", "0")?;
        self.sysctl(director, "net/ipv4/ip_forward", "1")?;
        for number in 1..=SERVERS.len() {
            let table = 100 + number;
            self.on(
                director,
                &format!(
                    "ip route add default via 10.79.0.{} table {table}",
                    10 + number
                ),
            )?;
            self.on(
                director,
                &format!("ip rule add fwmark {number} lookup {table}"),
            )?;
        }
        let to = format!("ip daddr {}", System::VirtualServer.address());
        let (client, servers) = ("ip saddr . tcp sport", SERVERS.len());
        // The entry of a client's port stays, so that a repeated SYN goes where the first one went.
        let rules = format!(
            "table ip director {{\n\
             map connections {{ type ipv4_addr . inet_service : mark; size 65536; flags dynamic,timeout; timeout 1h; }}\n\
             chain choose {{ type filter hook prerouting priority mangle; policy accept;\n\
             {to} tcp flags & (syn | ack) == syn add @connections {{ {client} : numgen inc mod {servers} offset 1 }}\n\
             {to} meta mark set {client} map @connections\n}}\n}}\n"
        );
        self.words(director, &["nft", &rules])
    }

    /// Sets rates and queues. Hosts send packets one by one, so that a queue drops one packet and not 64 KiB at a
    /// time.
    fn narrow(&self, own_rate: u64) -> Result<()> {
        for system in System::ALL {
            for host in system.senders() {
                let link = system.link();
                self.on(host, &format!("ethtool -K {link} tso off gso off"))?;
                self.limit((host, link), own_rate, OWN_QUEUE)?;
            }
        }
        self.limit(("router", "eth1"), RATE, ROUTER_QUEUE)
    }

    fn limit(&self, (host, interface): (&str, &str), rate: u64, queue: u64) -> Result<()> {
        let (burst, queue) = (BURST * FRAME, queue * FRAME);
        self.on(
            host,
            &format!(
                "tc qdisc add dev {interface} root tbf rate {rate} burst {burst} limit {queue}"
            ),
        )
    }

    fn sysctl(&self, host: &str, key: &str, value: &str) -> Result<()> {
        let path = format!("/proc/sys/{key}");
        self.running()?
            .within(host, || std::fs::write(&path, value))?
            .with_context(|| format!("write {value} to {path} on {host}"))
    }

    fn on(&self, host: &str, line: &str) -> Result<()> {
        self.words(host, &line.split(' ').collect::<Vec<_>>())
    }

    fn words(&self, host: &str, words: &[&str]) -> Result<()> {
        self.output(host, words).map(drop)
    }

    /// The output of a program on a host.
    pub fn output(&self, host: &str, words: &[&str]) -> Result<String> {
        let output = (self.running()?.exec(host)?)
            .args(words)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("run {words:?} on {host}"))?;
        let error = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            bail!("{words:?} on {host}: {}: {error}", output.status);
        }
        String::from_utf8(output.stdout).with_context(|| format!("read what {words:?} says"))
    }

    /// The number of bytes that have passed the bottleneck towards the clients since the start.
    pub fn passed(&self) -> Result<u64> {
        let text = self.running()?.within("router", || {
            std::fs::read_to_string("/proc/thread-self/net/dev").context("read /proc/net/dev")
        })??;
        sent_by(&text, "eth1").context("the router has no eth1")
    }

    /// The number of packets since the start that found the bottleneck's queue full.
    pub fn dropped(&self) -> Result<u64> {
        self.drops("router", "eth1")
    }

    /// The number of packets that found the queue of their own sender's interface full.
    pub fn dropped_by_senders(&self, system: System) -> Result<u64> {
        let senders = system.senders().iter();
        senders.map(|host| self.drops(host, system.link())).sum()
    }

    fn drops(&self, host: &str, interface: &str) -> Result<u64> {
        let said = self.output(host, &["tc", "-s", "-j", "qdisc", "show", "dev", interface])?;
        let queues: serde_json::Value = serde_json::from_str(&said)?;
        ensure!(queues[0]["kind"] == "tbf", "the queue of {host} is {said}");
        let drops = queues[0]["drops"].as_u64();
        drops.with_context(|| format!("no drops in {said}"))
    }
}

/// The bytes that an interface has sent. The line has eight columns of what was received, then the bytes sent
/// (proc_pid_net(5)).
pub(super) fn sent_by(text: &str, interface: &str) -> Option<u64> {
    let is_its = |line: &str| {
        Some(
            line.trim_start()
                .strip_prefix(interface)?
                .strip_prefix(':')?
                .to_owned(),
        )
    };
    let line = text.lines().find_map(is_its)?;
    line.split_ascii_whitespace().nth(8)?.parse().ok()
}

/// The rate of the links of io1 and of the servers, in bits a second.
fn own_rate(options: &Options) -> u64 {
    RATE * if options.wide { WIDE } else { OWN }
}

/// The setup of the measurement, in a sentence.
pub(super) fn markdown(options: &Options) -> String {
    format!(
        "## SAPS and the Virtual Server behind one bottleneck\n\n\
         {} Mbit/s, {ROUTER_QUEUE} packets of queue at the router; io1 and each of {} servers have links of {} Mbit/s, \
         with {OWN_QUEUE} packets of queue of their own. Ratios are taken within a round: median (min–max).\n",
        RATE / 1_000_000,
        SERVERS.len(),
        own_rate(options) / 1_000_000,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_sent_are_the_ninth_column() {
        let text = "Inter-| Receive\n face |bytes\n  eth0: 1 2 3 4 5 6 7 8 9 10\n  eth1:11 2 3 4 5 6 7 8 99 10\n";
        assert_eq!(sent_by(text, "eth1"), Some(99));
        assert_eq!(sent_by(text, "eth"), None);
    }
}
