//! Checks the memory for the table of connections.

use super::proc;
use crate::doctor::finding::Finding;

/// Checks that there is enough memory. The table is allocated as a whole when the node starts, so that it never grows
/// in the packet path; a start with too little memory fails or drives other programs out.
pub fn check(flows: u32, running: bool) -> Finding {
    let meminfo = proc::text("/proc/meminfo").unwrap_or_default();
    judge(&meminfo, flows, running)
}

const NAME: &str = "memory";
/// The bytes of a TCB entry, including the map's overhead.
const ENTRY_BYTES: u64 = 128;

fn judge(meminfo: &str, flows: u32, running: bool) -> Finding {
    let wanted = u64::from(flows) * ENTRY_BYTES;
    let table = format!("{} MiB for {flows} flows", wanted.div_ceil(1 << 20));
    if running {
        return Finding::good(NAME, format!("{table}, allocated: the node runs"));
    }
    let available = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|value| value.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok())
        .map(|kilobytes| kilobytes << 10);
    let why = "The table of connections is allocated as a whole when the node starts.";
    let remedy = format!("{why} Lower flows under [cs], or give this machine more memory.");
    match available {
        Some(available) => {
            let found = format!("{table}; {} MiB available", available >> 20);
            if wanted > available {
                Finding::bad(NAME, found, remedy)
            } else if wanted > available / 2 {
                Finding::advice(NAME, found, remedy)
            } else {
                Finding::good(NAME, found)
            }
        }
        None => Finding::advice(
            NAME,
            format!("{table}; /proc/meminfo does not show how much is available"),
            format!("{why} See that there is as much."),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Bad, Good};

    #[test]
    fn the_table_has_to_fit() {
        let memory =
            |mebibytes: u64| format!("MemTotal: 1 kB\nMemAvailable:   {} kB\n", mebibytes << 10);
        let verdict = |mebibytes| judge(&memory(mebibytes), 1 << 20, false).verdict();
        assert_eq!(verdict(1000), Good);
        assert_eq!(verdict(200), Advice);
        assert_eq!(verdict(127), Bad);
        assert_eq!(judge("", 1 << 20, false).verdict(), Advice);
        assert_eq!(judge(&memory(1), 1 << 20, true).verdict(), Good);
    }
}
