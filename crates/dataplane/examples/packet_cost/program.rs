//! What the kernel says of a loaded program.

use std::{
    fs,
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
};

use anyhow::{Context as _, Result, bail};
use baton_dataplane::sys;
use libbpf_rs::{
    MapCore as _, MapHandle,
    query::{ProgInfoIter, ProgInfoQueryOptions, ProgramInfo},
};

/// What a program costs to load, and how long it is.
pub struct Size {
    /// The number of instructions that the verifier walked.
    pub verified: u32,
    /// The length of the machine code in bytes.
    pub jited: usize,
    /// The length of the BPF code in bytes, 8 for each instruction.
    pub bpf: usize,
}

/// The runs of a program while statistics are on.
#[derive(Clone, Copy)]
pub struct Runs {
    pub count: u64,
    pub nanoseconds: u64,
}

pub fn size(program: &OwnedFd) -> Result<Size> {
    let info = info(program)?;
    Ok(Size {
        verified: sys::verified_instructions(program.as_fd())?,
        jited: info.jited_prog_insns.len(),
        bpf: info.xlated_prog_insns.len(),
    })
}

/// Returns a map that the program uses.
pub fn map(program: &OwnedFd, name: &str) -> Result<MapHandle> {
    for id in info(program)?.map_ids {
        let map = MapHandle::from_map_id(id)?;
        if map.name() == name {
            return Ok(map);
        }
    }
    bail!("the program has no map {name}")
}

/// Returns all runs since statistics were first on.
pub fn runs(program: &OwnedFd) -> Result<Runs> {
    Ok(Runs {
        count: field(program, "run_cnt")?,
        nanoseconds: field(program, "run_time_ns")?,
    })
}

impl Runs {
    /// Mean nanoseconds of the runs since `before`.
    pub fn mean_since(self, before: Self) -> f64 {
        (self.nanoseconds - before.nanoseconds) as f64 / self.count_since(before) as f64
    }

    pub fn count_since(self, before: Self) -> u64 {
        self.count - before.count
    }
}

/// Turns `kernel.bpf_stats_enabled` on, and restores its value when dropped.
pub struct Statistics {
    before: String,
}

impl Statistics {
    const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";

    pub fn on() -> Result<Self> {
        let before = fs::read_to_string(Self::SWITCH)?;
        fs::write(Self::SWITCH, "1")?;
        Ok(Self { before })
    }
}

impl Drop for Statistics {
    fn drop(&mut self) {
        if let Err(error) = fs::write(Self::SWITCH, &self.before) {
            eprintln!("{} could not be set back: {error}", Self::SWITCH);
        }
    }
}

fn info(program: &OwnedFd) -> Result<ProgramInfo> {
    let id: u32 = field(program, "prog_id")?.try_into()?;
    let options = ProgInfoQueryOptions::default()
        .include_jited_prog_insns(true)
        .include_xlated_prog_insns(true)
        .include_map_ids(true);
    ProgInfoIter::with_query_opts(options)
        .find(|info| info.id == id)
        .context("the program is not in the kernel's list")
}

/// Reads a number from the descriptor's `/proc/self/fdinfo`.
fn field(program: &OwnedFd, name: &str) -> Result<u64> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", program.as_raw_fd()))?;
    let value = info
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(found, _)| *found == name)
        .with_context(|| format!("the kernel does not say {name} of programs"))?;
    Ok(value.1.trim().parse()?)
}
