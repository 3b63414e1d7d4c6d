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
    let mut adapters = Vec::new();
    for chosen in interface::choose(interface, node, &netlink).await {
        match chosen {
            Ok(adapter) => {
                findings.push(interface::judge(&adapter));
                adapters.push(adapter);
            }
            Err(finding) => findings.push(finding),
        }
    }
    let (running_findings, status) = match &subject.placed {
        Some(placed) => running::check(&placed.file, subject.clock_window),
        None => (Vec::new(), None),
    };
    if subject.roles.is_cs() || subject.roles.is_switch() {
        findings.extend(xdp_findings(&adapters).await);
    }
    if subject.roles.is_cs() {
        findings.push(memory::check(subject.flows, status.is_some()));
    }
    if subject.roles.is_ds() {
        findings.extend(ds_findings(&subject, &adapters));
    }
    findings.push(clock::check(subject.clock_window));
    if let Some(placed) = &subject.placed {
        findings.extend(cluster_findings(placed, &adapters, &netlink).await);
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

async fn xdp_findings(adapters: &[Adapter]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for adapter in adapters {
        let mut found = xdp::check(adapter);
        if adapters.len() > 1 {
            found.push(xdp::check_redirect(adapter));
        }
        found.push(offloads::check(adapter).await);
        found.push(interface::judge_mtu(adapter));
        let of_several = |finding: Finding| match adapters {
            [_] => finding,
            _ => finding.at(&adapter.name),
        };
        findings.extend(found.into_iter().map(of_several));
    }
    findings
}

fn ds_findings(subject: &Subject, adapters: &[Adapter]) -> Vec<Finding> {
    let mut findings = tcp_settings::check();
    findings.extend(servers::check(subject.services().as_deref()));
    findings.extend(
        adapters
            .iter()
            .map(|adapter| rp_filter::check(&adapter.name)),
    );
    findings.extend([
        receive_window::check(subject.window_scale),
        accept_queue::check(),
        control_groups::check(),
    ]);
    findings
}

async fn cluster_findings(
    placed: &Placed,
    adapters: &[Adapter],
    netlink: &Netlink,
) -> Vec<Finding> {
    let mut findings = vec![address::check(placed, adapters, netlink).await];
    let ways = neighbors::look(placed, netlink).await;
    findings.push(neighbors::judge(&ways));
    if let Some(adapter) = adapters.first()
        && let Ok(link) = netlink.link_named(&adapter.name).await
    {
        findings.push(duplicates::check(placed, &link, &ways).await);
    }
    findings
}
