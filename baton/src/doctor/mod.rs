//! Says what this kernel and NIC can and cannot do for baton, and what to change. Changes nothing.
//!
//! A check is a module: it reads a little, and judges what it read in a function of its own, so that
//! every judgement is tested without the kernel that would deserve it.

mod accept_queue;
mod address;
mod bpf_fs;
mod btf;
mod clock;
mod configuration;
mod control_groups;
mod duplicates;
mod finding;
mod interface;
mod jit;
mod kernel;
mod list;
mod memory;
mod neighbors;
mod offloads;
mod privileges;
mod proc;
mod programs;
mod receive_window;
mod rp_filter;
mod running;
mod servers;
mod subject;
mod tcp_settings;
mod vlans;
mod xdp;

use std::path::Path;

use anyhow::Result;
use baton_net::{Adapter, Netlink};

use self::subject::{Placed, Subject};
pub use self::{
    finding::{Finding, Verdict},
    list::List,
};

/// Examines this machine, as the node that it is in the configuration, or as any node. Must be called
/// within a runtime of a single thread: everything is about that thread's network namespace.
///
/// # Errors
/// Only if the kernel gives no routing socket at all. Whatever else fails is a finding.
pub async fn examine(file: Option<&Path>, interface: Option<&str>) -> Result<Vec<Finding>> {
    // What libbpf has to say is part of the findings.
    libbpf_rs::set_print(None);
    let (mut findings, subject) = match file {
        Some(file) => configuration::check(file),
        None => (Vec::new(), Subject::unknown()),
    };
    findings.extend(kernel_findings(&subject));

    let netlink = Netlink::open()?;
    let node = subject.placed.as_ref().map(|placed| &placed.me);
    let adapter = match interface::choose(interface, node, &netlink).await {
        Ok(adapter) => {
            findings.push(interface::judge(&adapter));
            Some(adapter)
        }
        Err(finding) => {
            findings.push(finding);
            None
        }
    };
    let (running_findings, status) = match &subject.placed {
        Some(placed) => running::check(&placed.file, subject.clock_window),
        None => (Vec::new(), None),
    };
    if let Some(adapter) = adapter.as_ref()
        && (subject.roles.is_cs() || subject.roles.is_switch())
    {
        findings.extend(xdp_findings(adapter, &netlink).await);
    }
    if subject.roles.is_cs() {
        findings.push(memory::check(subject.flows, status.is_some()));
    }
    if subject.roles.is_ds() {
        findings.extend(ds_findings(&subject, adapter.as_ref()));
    }
    findings.push(clock::check(subject.clock_window));
    if let Some(placed) = &subject.placed {
        findings.extend(cluster_findings(placed, adapter.as_ref(), &netlink).await);
    }
    findings.extend(running_findings);
    Ok(findings)
}

fn kernel_findings(subject: &Subject) -> Vec<Finding> {
    let privileges = privileges::check();
    let privileged = privileges.verdict() == Verdict::Good;
    let programs = programs::check(subject.roles.bits().into(), privileged);
    let programs_load = privileged && programs.verdict() == Verdict::Good;
    let mut findings = vec![privileges, kernel::check()];
    findings.extend(btf::check());
    findings.extend([
        bpf_fs::check(&subject.bpf_dir),
        jit::check(programs_load),
        programs,
    ]);
    findings
}

async fn xdp_findings(adapter: &Adapter, netlink: &Netlink) -> Vec<Finding> {
    let mut findings: Vec<Finding> = xdp::check(adapter).into_iter().collect();
    findings.push(offloads::check(adapter).await);
    if !xdp::is_native(adapter) {
        findings.push(offloads::check_merging(adapter).await);
    }
    findings.push(vlans::check(adapter, netlink).await);
    findings.push(interface::judge_mtu(adapter));
    findings
}

fn ds_findings(subject: &Subject, adapter: Option<&Adapter>) -> Vec<Finding> {
    let mut findings = tcp_settings::check();
    findings.extend(servers::check(subject.services().as_deref()));
    findings.extend(adapter.map(|adapter| rp_filter::check(&adapter.name)));
    findings.extend([
        receive_window::check(subject.window_scale),
        accept_queue::check(),
        control_groups::check(),
    ]);
    findings
}

async fn cluster_findings(
    placed: &Placed,
    adapter: Option<&Adapter>,
    netlink: &Netlink,
) -> Vec<Finding> {
    let mut findings = vec![address::check(placed, adapter, netlink).await];
    let ways = neighbors::look(placed, netlink).await;
    findings.push(neighbors::judge(&ways));
    if let Some(adapter) = adapter
        && let Ok(link) = netlink.link_named(&adapter.name).await
    {
        findings.push(duplicates::check(placed, &link, &ways).await);
    }
    findings
}
