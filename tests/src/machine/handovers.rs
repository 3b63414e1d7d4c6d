//! Connections that move with every request, and the driver's counters of them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::client::Report;
use super::cluster::Cluster;

/// The number of requests if `BATON_MACHINES_REQUESTS` is not set: they take a few minutes in emulation.
const REQUESTS: usize = 10_000;

const CONNECTIONS: usize = 8;

/// Each request goes to the other data server than the one before on its connection.
pub(super) fn every_request(cluster: &mut Cluster) -> Result<()> {
    moving(cluster, &["/ds1/4k", "/ds2/4k"])
}

/// Each data server gets two successive requests of a connection, then the other one gets two.
pub(super) fn every_second_request(cluster: &mut Cluster) -> Result<()> {
    moving(cluster, &["/ds1/4k", "/ds1/4k", "/ds2/4k", "/ds2/4k"])
}

/// Runs connections that ask for these paths again and again.
fn moving(cluster: &mut Cluster, paths: &[&str]) -> Result<()> {
    let requests = match std::env::var("BATON_MACHINES_REQUESTS") {
        Ok(text) => (text.parse()).context("BATON_MACHINES_REQUESTS is no number")?,
        Err(_) => REQUESTS,
    };
    let front = cluster.front()?;
    let handovers = cluster.at_connection_servers("cs_moved_on")?;
    let forwarded = cluster.at_connection_servers("cs_forward")?;
    let driver = counted(cluster, front)?;
    let report = cluster.guest("client")?.run_for(
        &format!(
            "/machine/client {} {CONNECTIONS} 0s {requests}",
            paths.join(",")
        ),
        Duration::from_secs(3600),
    )?;
    let report: Report = serde_json::from_str(&report)?;
    eprintln!(
        "machines: {} requests of {requests} right in {:.0} s, {:.0} a second, {} changes of the server, the longest took {} ms",
        report.right,
        report.seconds,
        report.right as f64 / report.seconds,
        report.changes,
        report.longest_ms,
    );
    ensure!(
        report.failed.is_empty() && report.right == requests && report.connections == CONNECTIONS,
        "{} of {requests} right, over {} connections; failed: {:#?}",
        report.right,
        report.connections,
        report.failed
    );
    ensure!(
        report.by_others == 0,
        "{} of {requests} were answered by another server than they name",
        report.by_others
    );
    let handovers = cluster.at_connection_servers("cs_moved_on")? - handovers;
    ensure!(
        handovers >= report.changes as u64,
        "{handovers} handovers for {} changes of the server",
        report.changes
    );
    let forwarded = cluster.at_connection_servers("cs_forward")? - forwarded;
    let counted = counted(cluster, front)?;
    for queue in ["rx0_xdp_packets", "rx1_xdp_packets"] {
        ensure!(
            counted.get(queue) > driver.get(queue),
            "{front} got nothing by {queue}: {counted:?}"
        );
    }
    let sent = moved(&driver, &counted, "xdp_tx");
    eprintln!("machines: {handovers} handovers, {forwarded} forwarded, {sent} frames by XDP_TX");
    ensure!(
        sent >= handovers + forwarded,
        "the driver sent {sent} frames from XDP, of {handovers} handovers and {forwarded} forwarded packets"
    );
    Ok(())
}

/// The counters of `ethtool -S`, by names such as rx0_xdp_tx.
fn counted(cluster: &mut Cluster, on: &str) -> Result<BTreeMap<String, u64>> {
    let text = cluster.run(on, "ethtool -S eth0")?;
    let line = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim().to_owned(), value.trim().parse().ok()?))
    };
    Ok(text.lines().filter_map(line).collect())
}

/// How much the counters of all receive queues whose names end in `end` have grown together.
fn moved(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>, end: &str) -> u64 {
    // The list also holds their sum, such as rx_xdp_tx, which must not count twice.
    let of_queues = |(name, _): &(&String, &u64)| {
        name.starts_with("rx") && name.ends_with(end) && name.contains(|c: char| c.is_ascii_digit())
    };
    let grown = |(name, value): (&String, &u64)| value - before.get(name).unwrap_or(&0);
    after.iter().filter(of_queues).map(grown).sum()
}
