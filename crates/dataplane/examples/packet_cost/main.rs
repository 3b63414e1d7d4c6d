//! What a packet costs in each program, in nanoseconds:
//!
//! ```text
//! sudo -E cargo run --release -p baton-dataplane --example packet_cost [ROUNDS [ROW]]
//! ```
//!
//! ROW selects rows for a profiler to look at: with a part of a row's name, only such rows of the connection server
//! are measured; with "data server", only the data server's rows.
//!
//! A row is the median over rounds of the time that a packet takes with the program, less the time that it takes in
//! the same way with an empty program. Rounds are interleaved: each measures every row once. The program's own
//! counters account for every measured packet.

#![allow(
    clippy::unwrap_used,
    reason = "the packet tables' own helpers, which may panic"
)]

mod cs;
mod ds;
mod program;
mod report;
mod switch;
mod wrapper;

#[allow(
    dead_code,
    unused_imports,
    reason = "of the packet tables only some are of use here"
)]
#[path = "../../tests/packets"]
mod tables {
    pub mod blank;
    pub mod cluster;
    pub mod host;
    pub mod lccp;
    pub mod network;
    pub mod node;
    pub mod options;
    pub mod read;
    pub mod seen;
    pub mod segment;
    pub mod sniff;
}
use tables::{blank, cluster, host, lccp, network, node, options, read, seen, segment, sniff};

use anyhow::{Context as _, Result};
use nix::{
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};

use crate::{
    cs::ConnectionServer, ds::DataServer, program::Statistics, switch::Switch, wrapper::Wrapper,
};

const ROUNDS: usize = 15;
const DATA_SERVER: &str = "data server";

fn main() -> Result<()> {
    let rounds = match std::env::args().nth(1) {
        Some(text) => text.parse().context("ROUNDS is a number")?,
        None => ROUNDS,
    };
    let only = std::env::args().nth(2).unwrap_or_default();
    let _host = host::own_host();
    measure(rounds, &only)
}

fn measure(rounds: usize, only: &str) -> Result<()> {
    let wrapper = Wrapper::load()?;
    let mut cs = ConnectionServer::new(&wrapper)?;
    let mut ds = DataServer::new(&wrapper)?;
    let mut switch = Switch::new(&wrapper);
    stay_on_one_processor()?;
    // The first round only warms up.
    for _ in 0..=rounds {
        cs.round(only)?;
        if only.is_empty() || only == DATA_SERVER {
            let statistics = Statistics::on()?;
            ds.round()?;
            drop(statistics);
        }
        if only.is_empty() {
            switch.round()?;
            cs.set_flows()?;
        }
    }
    let sizes = [
        ("connection server (XDP)", program::size(cs.program())?),
        ("data server (tcx)", program::size(ds.program())?),
        ("data server, way out (tcx)", program::size(ds.head())?),
        ("switch (XDP)", program::size(switch.program())?),
    ];
    println!("{rounds} rounds");
    report::print("Connection server", &cs.rows());
    report::print("Data server", &ds.rows());
    report::print("Switch", &switch.rows());
    report::print_sizes(&sizes);
    Ok(())
}

fn stay_on_one_processor() -> Result<()> {
    let mut last = CpuSet::new();
    let processors = std::thread::available_parallelism()?.get();
    last.set(processors - 1)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &last)?)
}
