//! Measures what a turn cost (the paper's table 6): retransmissions, bandwidth at the bottleneck, processor time.

use std::time::Instant;

use anyhow::{Context as _, Result};

use super::cluster::Cluster;
use super::system::{Round, System, TURNS};
use crate::cpu::CpuTime;
use crate::processes;
use crate::snmp;
use crate::statistics::Spread;

/// A reading of everything that is counted.
pub(super) struct Meters {
    time: Instant,
    machine: CpuTime,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// TCP segments that the senders have sent for the first time (Linux's OutSegs); `retransmitted` counts those sent
    /// again, and `timeouts` the timers that expired.
    sent: u64,
    retransmitted: u64,
    timeouts: u64,
    /// The bytes that have passed the bottleneck; `dropped` counts the packets that found its queue full.
    bytes: u64,
    dropped: u64,
    /// The packets that found the queue of their sender's own interface full.
    own_dropped: u64,
    /// The seconds of processor time of the I/O server's daemon; `agents` is that of the application nodes' daemons,
    /// `servers` that of nginx.
    io: f64,
    agents: f64,
    servers: f64,
}

/// The differences between two readings, for each second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    pub retransmitted: f64,
    /// The retransmitted segments, as a part of those that were sent for the first time.
    retransmitted_part: f64,
    timeouts: f64,
    dropped: f64,
    own_dropped: f64,
    megabits: f64,
    io: f64,
    agents: f64,
    servers: f64,
    machine: f64,
}

impl Meters {
    pub fn read(cluster: &Cluster, system: System) -> Result<Meters> {
        let mut counts = Counts::default();
        for host in system.senders() {
            let (tcp, timers) = cluster.running()?.within(host, || {
                let read =
                    |of: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{of}"));
                Ok::<_, std::io::Error>((read("snmp")?, read("netstat")?))
            })??;
            counts.sent += snmp::column(&tcp, "Tcp", "OutSegs")?;
            counts.retransmitted += snmp::column(&tcp, "Tcp", "RetransSegs")?;
            counts.timeouts += snmp::column(&timers, "TcpExt", "TCPTimeouts")?;
        }
        counts.bytes = cluster.passed()?;
        counts.dropped = cluster.dropped()?;
        counts.own_dropped = cluster.dropped_by_senders(system)?;
        let worked = |host: &str, of: &str| processes::seconds(cluster.lab().process(host, of)?);
        for host in system.web_servers() {
            counts.servers += worked(host, "nginx")?;
            if system == System::Saps {
                counts.agents += worked(host, "node")?;
            }
        }
        if system == System::Saps {
            counts.io = worked("io1", "node")?;
        }
        Ok(Meters {
            time: Instant::now(),
            machine: CpuTime::now().context("read the machine's processor time")?,
            counts,
        })
    }

    pub fn since(&self, before: &Meters) -> Usage {
        let seconds = (self.time - before.time).as_secs_f64();
        let (now, then) = (self.counts, before.counts);
        let a_second = |of: fn(Counts) -> u64| (of(now) - of(then)) as f64 / seconds;
        let retransmitted = a_second(|counts| counts.retransmitted);
        Usage {
            retransmitted,
            retransmitted_part: retransmitted / a_second(|counts| counts.sent),
            timeouts: a_second(|counts| counts.timeouts),
            dropped: a_second(|counts| counts.dropped),
            own_dropped: a_second(|counts| counts.own_dropped),
            megabits: a_second(|counts| counts.bytes) * 8.0 / 1e6,
            io: (now.io - then.io) / seconds,
            agents: (now.agents - then.agents) / seconds,
            servers: (now.servers - then.servers) / seconds,
            machine: self.machine.micros_since(before.machine) / 1e6 / seconds,
        }
    }
}

pub(super) fn markdown(rounds: &[Round<Usage>]) -> String {
    let mut text = String::from(
        "## What that took, a second: medians of rounds (table 6)\n\n\
         Retransmissions and timers are the senders', also as a part of the segments sent for the first time; dropped is what found the router's queue full, \
         at home what found that of its sender's own interface full, of which TCP is told at once. In the paper: 103 and \
         11984 retransmissions, 930.0 and 917.8 Mbit/s, processor 45 and 6 %. Processor time in \
         hundredths of one processor: daemons and nginx with what the kernel does for them; the machine has all that runs \
         on it. The director forwards in the kernel and has no process.\n\n\
         | sender | system | retransmissions | of segments | timers | dropped | at home | Mbit/s | I/O server's daemon | agents | nginx | machine |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for (at, (sender, system)) in TURNS.into_iter().enumerate() {
        let median =
            |of: fn(&Usage) -> f64| Spread::of(rounds.iter().map(|round| of(&round[at]))).median;
        let percent = |of: fn(&Usage) -> f64| format!("{:.1} %", 100.0 * median(of));
        let daemon = |of: fn(&Usage) -> f64| match system {
            System::Saps => percent(of),
            System::VirtualServer => "–".to_owned(),
        };
        text += &format!(
            "| {} | {} | {:.1} | {:.3} % | {:.1} | {:.1} | {:.1} | {:.1} | {} | {} | {} | {} |\n",
            sender.name(),
            system.name(),
            median(|usage| usage.retransmitted),
            100.0 * median(|usage| usage.retransmitted_part),
            median(|usage| usage.timeouts),
            median(|usage| usage.dropped),
            median(|usage| usage.own_dropped),
            median(|usage| usage.megabits),
            daemon(|usage| usage.io),
            daemon(|usage| usage.agents),
            percent(|usage| usage.servers),
            percent(|usage| usage.machine),
        );
    }
    text
}
