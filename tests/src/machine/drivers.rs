//! Checks of what the driver offers: native XDP, queues and offloads.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::cluster::{CONNECTION_SERVERS, Cluster, DATA_SERVERS};

/// A value of the `enum` for `IFLA_XDP_ATTACHED` in include/uapi/linux/if_link.h: the program is attached in the
/// driver.
const XDP_ATTACHED_DRV: u64 = 1;

/// Checks that every node's programs are attached where they belong, in a driver with two queues, and that `baton
/// doctor` finds nothing bad.
pub(super) fn attached(cluster: &mut Cluster) -> Result<()> {
    for on in CONNECTION_SERVERS {
        let link: Value = serde_json::from_str(&cluster.run(on, "ip -j -d link show eth0")?)?;
        let xdp = &link[0]["xdp"];
        ensure!(xdp["mode"] == XDP_ATTACHED_DRV, "{on}: XDP is {xdp}");
        let name = xdp["prog"]["name"].as_str().unwrap_or_default();
        ensure!(name.starts_with("baton_"), "{on}: XDP is {xdp}");
        let said = &cluster.status(on)?["xdp"];
        ensure!(said == "native", "{on} says that XDP is {said}");
    }
    for on in DATA_SERVERS {
        let programs = cluster.run(on, "bpftool net show dev eth0")?;
        ensure!(
            programs.contains("tcx/ingress") && programs.contains("baton_ds"),
            "{on}: {programs}"
        );
        offloads_are_on(cluster, on)?;
    }
    for on in CONNECTION_SERVERS.iter().chain(&DATA_SERVERS) {
        let driver = cluster.run(on, "basename $(readlink /sys/class/net/eth0/device/driver)")?;
        ensure!(
            driver.trim() == "virtio_net",
            "{on}: the driver is {driver}"
        );
        let queues = cluster.run(on, "ls /sys/class/net/eth0/queues | sort")?;
        let queues: Vec<&str> = queues.lines().collect();
        ensure!(
            queues[..2] == ["rx-0", "rx-1"]
                && queues
                    .iter()
                    .filter(|queue| queue.starts_with("rx"))
                    .count()
                    == 2,
            "{on}: its queues are {queues:?}"
        );
        healthy(cluster, on)?;
    }
    let steered = cluster.run("ds2", "cat /sys/class/net/eth0/queues/rx-*/rps_cpus")?;
    ensure!(
        steered.lines().count() == 2
            && steered
                .lines()
                .all(|mask| mask.trim_matches(['0', ',']) == "3"),
        "ds2 has no RPS: {steered}"
    );
    Ok(())
}

/// Checks that a data server's NIC delivers merged segments without checksums to its kernel, and accepts such
/// segments.
fn offloads_are_on(cluster: &mut Cluster, on: &str) -> Result<()> {
    let features = cluster.run(on, "ethtool -k eth0")?;
    for feature in [
        "rx-checksumming",
        "tx-checksumming",
        "tcp-segmentation-offload",
        "generic-receive-offload",
    ] {
        let line = (features.lines())
            .find(|line| line.trim_start().starts_with(feature))
            .with_context(|| format!("{on} knows no {feature}"))?;
        ensure!(line.contains(": on"), "{on}: {line}");
    }
    Ok(())
}

fn healthy(cluster: &mut Cluster, on: &str) -> Result<()> {
    let findings = doctor(cluster, on, "--config /etc/baton/baton.toml")?;
    let bad: Vec<&Value> = (findings.iter())
        .filter(|finding| finding["verdict"] == "bad")
        .collect();
    ensure!(bad.is_empty(), "baton doctor on {on}: {bad:#?}");
    let good = |name: &str| {
        findings
            .iter()
            .any(|finding| finding["name"] == name && finding["verdict"] == "good")
    };
    let mut names = vec!["interface", "programs"];
    if CONNECTION_SERVERS.contains(&on) {
        names.extend(["xdp", "xdp_place", "lro"]);
    }
    for name in names {
        ensure!(
            good(name),
            "baton doctor on {on} does not find {name} good: {findings:#?}"
        );
    }
    Ok(())
}

fn doctor(cluster: &mut Cluster, on: &str, options: &str) -> Result<Vec<Value>> {
    let output = cluster
        .guest(on)?
        .try_run(&format!("baton doctor --json {options}"))?;
    serde_json::from_str(&output.text)
        .with_context(|| format!("baton doctor on {on} says {:?}", output.text))
}

/// Checks that a driver which may not switch off the guest's receive offloads refuses native XDP, as the kernel has
/// it, and accepts generic XDP.
pub(super) fn refused(cluster: &mut Cluster) -> Result<()> {
    const PROGRAM: &str = "$(bpftool -j prog show name baton_cs | tr , '\\n' | sed -n 's/.*\"id\":\\([0-9]*\\).*/\\1/p' | tail -n 1)";
    cluster.run("cs2", "ip link set eth1 up")?;
    let attach = |kind: &str| format!("bpftool net attach {kind} id {PROGRAM} dev eth1");
    let native = cluster.guest("cs2")?.try_run(&attach("xdpdrv"))?;
    ensure!(
        native.status != 0 && native.text.contains("not supported"),
        "native XDP was not refused: {} {}",
        native.status,
        native.text
    );
    cluster.run("cs2", &attach("xdpgeneric"))?;
    cluster.run(
        "cs2",
        "bpftool net detach xdpgeneric dev eth1 && ip link set eth1 down",
    )?;
    Ok(())
}
