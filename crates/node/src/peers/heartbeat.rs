//! HELLO: what this node says of itself, and to which nodes.

use std::{fs, net::Ipv4Addr, time::SystemTime};

use baton_config::Config;
use baton_wire::{Clock, Hello, HelloService, Incarnation, Message, Permille};

/// The wall clock, as messages carry it.
pub fn clock_now() -> Clock {
    SystemTime::now().into()
}

/// The IPv4 addresses of all other nodes of the cluster.
pub fn peers(config: &Config, own: Ipv4Addr) -> Vec<Ipv4Addr> {
    config
        .nodes
        .iter()
        .filter_map(|node| node.address.ipv4())
        .filter(|address| *address != own)
        .collect()
}

/// What this node's HELLOs say of the node itself.
pub struct Heartbeat {
    incarnation: Incarnation,
    cpu: CpuMeter,
}

impl Heartbeat {
    /// Begins the heartbeat of a daemon.
    pub fn new(incarnation: Incarnation) -> Self {
        Self {
            incarnation,
            cpu: CpuMeter::default(),
        }
    }

    /// The messages of the next heartbeat. They are several if one HELLO has no room for all services.
    pub fn next(&mut self, draining: bool, services: &[HelloService]) -> Vec<Message> {
        let hellos = Hello::batches(self.incarnation, self.cpu.read(), services).into_iter();
        let message = |hello: Hello| Message::Hello(hello.with_draining(draining));
        hellos.map(message).collect()
    }
}

/// How busy the processors were since the last look (`cpu` line of /proc/stat: proc(5)).
#[derive(Default)]
struct CpuMeter {
    busy: u64,
    total: u64,
}

impl CpuMeter {
    /// The busy share since the last call, or, at the first call, since boot.
    fn read(&mut self) -> Permille {
        let (busy, total) = fs::read_to_string("/proc/stat")
            .ok()
            .as_deref()
            .and_then(parse)
            .unwrap_or_default();
        let spent = total.saturating_sub(self.total).max(1);
        let share = busy.saturating_sub(self.busy) * u64::from(Permille::MAX) / spent;
        (self.busy, self.total) = (busy, total);
        Permille::saturating(u16::try_from(share).unwrap_or(Permille::MAX))
    }
}

/// Returns busy and total ticks. Idle time and waiting for I/O (fields 4 and 5) do not count as busy.
fn parse(stat: &str) -> Option<(u64, u64)> {
    let fields: Vec<u64> = stat
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_whitespace()
        .flat_map(str::parse)
        .collect();
    let total: u64 = fields.iter().take(8).sum();
    let idle = fields.get(3)? + fields.get(4)?;
    Some((total - idle, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_what_is_not_idle() {
        assert_eq!(
            parse("cpu  10 0 20 60 10 0 0 0 0 0\ncpu0 1 1 1 1"),
            Some((30, 100))
        );
        assert_eq!(parse("intr 5"), None);
        assert_eq!(parse(""), None);
    }
}
