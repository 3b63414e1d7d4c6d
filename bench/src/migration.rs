//! Measures how long it takes until another connection server has all entries of one, so that it may take over.

use std::net::{Ipv4Addr, SocketAddrV4};

use anyhow::{Context as _, Result, ensure};
use baton_abi::{ROLE_CS, Tcb, TcbKey};
use baton_dataplane::{Dataplane, Pins, Tick};

use crate::lab::{BenchLab, in_bench};
use crate::options::Options;
use crate::statistics::Spread;

/// The number of connections, the time in milliseconds that their transfer should take at most, and the milliseconds
/// that it took on servers without an operating system ("Applications of the Split Protocol Paradigm", section 6.3: 13
/// and 37 ms).
const SIZES: [(u32, f64, &str); 3] = [(138, 1.0, "13"), (260, 3.0, "37"), (100_000, 500.0, "")];

/// The two connection servers between which the entries go to and fro.
const PAIR: [&str; 2] = ["cs1", "cs2"];

/// The sizes of the tables: a node's default, and enough for a smaller site. A transfer walks the whole table.
const FLOWS: [u32; 2] = [1 << 20, 1 << 16];

/// Measures all sizes, and returns the report in Markdown.
pub(crate) fn measure(options: &Options) -> Result<String> {
    let mut text = String::from(
        "## Milliseconds until another connection server has all entries\n\n\
         From the first look at the table to the last acknowledgement. In the first round the other table is \
         empty, later it holds the same entries. Requests waited: how long none went on, which is for one more \
         look at the table.\n\n\
         | room for | entries | first round | all rounds | goal | in the papers | requests waited | batches sent again |\n\
         |--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for flows in FLOWS {
        text += &measure_tables(options, flows)?;
    }
    Ok(text)
}

/// The lines of the report for tables of this size.
fn measure_tables(options: &Options, flows: u32) -> Result<String> {
    let file = std::fs::read_to_string(in_bench("../labs/failover.toml")?)?;
    let named = file.replace("name = \"failover\"", "name = \"bench-migrate\"");
    let lab = BenchLab::raise_from(&format!("{named}\n[config.cs]\nflows = {flows}\n"), options)?;
    let tables = open(&lab, flows)?;
    let mut text = String::new();
    let mut filled = 0;
    let sizes = SIZES.iter().filter(|(entries, ..)| *entries < flows);
    for (entries, goal, papers) in sizes {
        eprintln!("migration of {entries} entries: {} rounds", options.rounds);
        fill(&tables[0], filled..*entries)?;
        filled = *entries;
        let (mut copied, mut held, mut resent) = (Vec::new(), Vec::new(), 0);
        for round in 0..options.rounds * 2 {
            let (from, to) = (PAIR[round as usize % 2], PAIR[1 - round as usize % 2]);
            let found = lab.ask(from, &["migrate", from, to])?;
            let number = |name: &str| found[name].as_f64().with_context(|| name.to_owned());
            let first = found["passes"][0].as_u64();
            ensure!(
                first >= Some((*entries).into()),
                "{first:?} of {entries} went over"
            );
            copied.push(number("copied_ms")?);
            held.push(number("held_ms")?);
            resent += found["resent"].as_u64().unwrap_or(0);
        }
        text += &format!(
            "| {flows} | {entries} | {:.2} | {} | ≤ {goal} | {papers} | {} | {resent} |\n",
            copied.first().copied().unwrap_or(f64::NAN),
            Spread::of(copied.iter().copied()),
            Spread::of(held.iter().copied()),
        );
    }
    Ok(text)
}

/// Opens the tables of both connection servers as their daemons have them.
fn open(lab: &BenchLab, flows: u32) -> Result<Vec<Dataplane>> {
    let open = |host: &&str| {
        let directory = lab.running()?.host(host)?.directory.join("baton.toml");
        let config = std::fs::read_to_string(&directory)?;
        let line = config.lines().find(|line| line.starts_with("bpf_dir"));
        let folder = line.and_then(|line| line.split('"').nth(1));
        let folder = folder.with_context(|| format!("{} has no bpf_dir", directory.display()))?;
        Ok(Dataplane::load(&baton_dataplane::Options {
            roles: ROLE_CS,
            flows,
            kept_requests: 1 << 14,
            xdp: baton_dataplane::XdpChoice::Auto,
            frags: false,
            pins: Some(Pins::new(std::path::Path::new(folder))),
        })?)
    };
    PAIR.iter().map(open).collect()
}

/// Fills a table with idle connections.
fn fill(dataplane: &Dataplane, numbers: std::ops::Range<u32>) -> Result<()> {
    let servers = dataplane.data_servers()?;
    let table = (dataplane.as_connection_server()).context("this node has no TCP table")?;
    let service = SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 100), 80);
    for number in numbers {
        let (owner, _) = servers[number as usize % servers.len()];
        let address = Ipv4Addr::from(0x0a00_0000 + number / 50_000);
        let client = SocketAddrV4::new(address, 1024 + (number % 50_000) as u16);
        let tcb = Tcb {
            last_seq: number,
            owner,
            previous: u16::MAX,
            mss: 1460,
            seen: Tick::now().0,
            ..Tcb::default()
        };
        table.set_tcb(&TcbKey::of(client, service), &tcb)?;
    }
    Ok(())
}
