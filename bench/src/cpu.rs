//! Measures the processor time of the whole machine.

use anyhow::{Context as _, Result};

/// The time that all processors together have worked since the machine's start: user, nice, system, irq, softirq.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuTime {
    ticks: u64,
}

/// The length of a tick: USER_HZ is 100 on every architecture that Linux still has (proc_stat(5)).
const MICROS_PER_TICK: f64 = 10_000.0;

impl CpuTime {
    /// Reads the current time.
    pub fn now() -> Result<CpuTime> {
        let text = std::fs::read_to_string("/proc/stat").context("read /proc/stat")?;
        CpuTime::parse(&text).context("/proc/stat is not as proc_stat(5) has it")
    }

    /// The microseconds since an earlier time.
    pub fn micros_since(self, earlier: CpuTime) -> f64 {
        self.ticks.saturating_sub(earlier.ticks) as f64 * MICROS_PER_TICK
    }

    /// The seconds since the machine's start.
    pub fn seconds(self) -> f64 {
        self.ticks as f64 * MICROS_PER_TICK / 1e6
    }

    fn parse(text: &str) -> Option<CpuTime> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let fields: Vec<u64> = line
            .split_ascii_whitespace()
            .map(|field| field.parse().ok())
            .collect::<Option<_>>()?;
        match fields[..] {
            [user, nice, system, _idle, _iowait, irq, softirq, ..] => Some(CpuTime {
                ticks: user + nice + system + irq + softirq,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_are_no_work() {
        let text = "cpu  1 2 4 1000 1000 8 16 1000 0 0\ncpu0 9 9 9 9 9 9 9 9 9 9\n";
        assert_eq!(CpuTime::parse(text).map(|time| time.ticks), Some(31));
        assert!(CpuTime::parse("cpu  1 2\n").is_none());
        assert!(CpuTime::parse("").is_none());
    }
}
