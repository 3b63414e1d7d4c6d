//! Measures what the programs cost where they run, by the kernel's own count of runs and time. The measurement is
//! separate and short, because counting costs time, too (two readings of the clock a run).

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::competitor::Competitor;
use crate::lab::BenchLab;
use crate::options::{Load, Options};
use crate::wrk;

const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";
const CONNECTION_SERVER: &str = "cs1";
const DATA_SERVERS: [&str; 3] = ["ds1", "ds2", "ds3"];

/// The cost of one load at the connection server and at the data servers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    load: Load,
    requests: u64,
    cs: Runs,
    ds: Runs,
}

/// The loads. With keep-alive there is only forwarding; with close, every request has SYN, ADOPT and FIN.
const LOADS: [Load; 3] = [
    Load::FourKilobytes,
    Load::SixtyFourKilobytes,
    Load::FourKilobytesClose,
];

/// Measures with the kernel's counting switched on, and then restores the switch.
pub(crate) fn measure(lab: &BenchLab, options: &Options) -> Result<Vec<Cost>> {
    eprintln!("programs: {} loads", LOADS.len());
    let _counting = Counting::on()?;
    LOADS
        .into_iter()
        .map(|load| cost(lab, options, load))
        .collect()
}

fn cost(lab: &BenchLab, options: &Options, load: Load) -> Result<Cost> {
    let cs = |lab: &BenchLab| runs_at(lab, CONNECTION_SERVER, ProgramType::Xdp);
    let ds = |lab: &BenchLab| {
        DATA_SERVERS.iter().try_fold(Runs::default(), |sum, host| {
            Ok::<_, anyhow::Error>(sum.plus(runs_at(lab, host, ProgramType::SchedCls)?))
        })
    };
    let before = (cs(lab)?, ds(lab)?);
    let measured = wrk::run(lab, Competitor::Baton, load.work(options))?;
    Ok(Cost {
        load,
        requests: measured.requests,
        cs: cs(lab)?.minus(before.0),
        ds: ds(lab)?.minus(before.1),
    })
}

/// A table of the nanoseconds a run, and the runs a request.
pub(crate) fn markdown(costs: &[Cost]) -> String {
    let mut text = String::from(
        "## The programs in place, ns a packet (with the clock's own cost), and packets a request\n\n\
         | load | baton_cs | packets | baton_ds | packets |\n|---|--:|--:|--:|--:|\n",
    );
    for cost in costs {
        let (name, requests) = (cost.load.name(), cost.requests as f64);
        text += &format!(
            "| {name} | {:.0} | {:.2} | {:.0} | {:.2} |\n",
            cost.cs.mean(),
            cost.cs.count as f64 / requests,
            cost.ds.mean(),
            cost.ds.count as f64 / requests,
        );
    }
    text
}

/// The kernel's counting, which is on until this is dropped.
pub(crate) struct Counting {
    before: String,
}

impl Counting {
    /// Switches the counting on.
    pub fn on() -> Result<Counting> {
        let before = std::fs::read_to_string(SWITCH).with_context(|| format!("read {SWITCH}"))?;
        std::fs::write(SWITCH, "1").with_context(|| format!("write {SWITCH}"))?;
        Ok(Counting { before })
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        if let Err(error) = std::fs::write(SWITCH, self.before.trim()) {
            eprintln!(
                "bench: {SWITCH} was {} and stays 1: {error}",
                self.before.trim()
            );
        }
    }
}

/// Values of enum bpf_prog_type in include/uapi/linux/bpf.h.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProgramType {
    SchedCls = 3,
    Xdp = 6,
}

/// The runs of a program since it was loaded, as far as they were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    /// The number of runs.
    pub count: u64,
    /// The time that the runs took together, in nanoseconds.
    pub nanos: u64,
}

impl Runs {
    fn plus(self, other: Runs) -> Runs {
        Runs {
            count: self.count + other.count,
            nanos: self.nanos + other.nanos,
        }
    }

    fn minus(self, earlier: Runs) -> Runs {
        Runs {
            count: self.count - earlier.count,
            nanos: self.nanos - earlier.nanos,
        }
    }

    fn mean(self) -> f64 {
        self.nanos as f64 / self.count as f64
    }
}

/// The runs of a host's program of this type. A daemon holds one program of each type.
pub(crate) fn runs_at(lab: &BenchLab, host: &str, kind: ProgramType) -> Result<Runs> {
    let pid = lab.daemon(host)?;
    for fields in descriptors(&format!("/proc/{pid}/fdinfo"))? {
        let number = |name: &str| fields.get(name).and_then(|value| value.parse::<u64>().ok());
        if number("prog_type") == Some(kind as u64)
            && let (Some(count), Some(nanos)) = (number("run_cnt"), number("run_time_ns"))
        {
            return Ok(Runs { count, nanos });
        }
    }
    bail!("the daemon of {host} (pid {pid}) holds no {kind:?} program")
}

/// The kernel's information on each open descriptor of a process (proc_pid_fdinfo(5)).
pub(crate) fn descriptors(directory: &str) -> Result<Vec<BTreeMap<String, String>>> {
    let entries = Path::new(directory)
        .read_dir()
        .with_context(|| format!("read {directory}"))?;
    Ok(entries
        .flatten()
        // A descriptor that was closed since the directory was read is left out.
        .filter_map(|entry| std::fs::read_to_string(entry.path()).ok())
        .map(|text| fields(&text))
        .collect())
}

fn fields(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_descriptor() {
        let fields = fields("pos:\t0\nprog_type:\t6\nrun_cnt:\t12\n");
        assert_eq!(fields.get("prog_type").map(String::as_str), Some("6"));
        assert_eq!(fields.get("run_cnt").map(String::as_str), Some("12"));
    }
}
