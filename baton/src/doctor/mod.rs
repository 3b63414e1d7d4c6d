//! Finds out what this kernel and NIC can and cannot do for baton, and what to change. It changes nothing itself.
//!
//! Each check is a module. It reads a little, and judges what it read in a separate function, so that every judgement
//! can be tested without a kernel that would deserve it.

mod clock;
mod configuration;
mod finding;
mod kernel;
mod list;
mod network;
mod running;
mod servers;
mod start;
pub(crate) mod subject;

use std::path::Path;

use anyhow::Result;
use baton_dataplane::kernel::Kernel;
use baton_net::{Adapter, Netlink};

pub use self::{
    finding::{Finding, Verdict},
    list::List,
    start::before_start,
    subject::Placed,
};
use self::{
    kernel::{
        bpf_fs, btf, control_groups, features, jit, lockdown, memory, privileges, programs, version,
    },
    network::{
        address, duplicates, interface, nat, neighbors, offloads, response_route, rp_filter,
        virtio, vlans, xdp,
    },
    servers::{accept_queue, proxies, receive_window, relayed, tcp_settings},
    subject::Subject,
};

/// The result of an examination.
pub struct Examination {
    /// All findings.
    pub findings: Vec<Finding>,
    /// Details for reports: the features that are used, and the verifier's messages if it refused programs.
    pub details: String,
}

/// Examines this machine, as the node that it is in the configuration, or as any node. Must be called within a runtime
/// of a single thread, because everything is about that thread's network namespace.
///
/// # Errors
/// Fails only if the kernel gives no routing socket at all. Any other failure is a finding.
pub async fn examine(file: Option<&Path>, interface: Option<&str>) -> Result<Examination> {
    // libbpf does not print: its messages are part of the findings.
    libbpf_rs::set_print(None);
    let (mut findings, subject) = match file {
        Some(file) => configuration::check(file),
        None => (Vec::new(), Subject::unknown()),
    };
    // The running node is asked first: it soon forgets what it has just heard of others, and the checks of the kernel
    // may take a while.
    let (running_findings, status) = match &subject.placed {
        Some(placed) => running::check(&placed.file, subject.clock_window),
        None => (Vec::new(), None),
    };
    let about_kernel = kernel_findings(&subject);
    findings.extend(about_kernel.findings);

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
    if subject.roles.is_cs() || subject.roles.is_switch() {
        findings.extend(xdp_findings(&subject, &adapters, &netlink).await);
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
    Ok(Examination {
        findings,
        details: about_kernel.details,
    })
}

fn kernel_findings(subject: &Subject) -> Examination {
    let kernel = Kernel::look();
    let parts = subject.parts();
    let probed = features::look(&parts, &kernel);
    let mut details = format!(
        "Linux {}: features that are used\n{}",
        kernel.name,
        features::table(&probed)
    );
    let mut findings = deciding_findings(subject, &kernel, &probed);
    let may_try = findings
        .iter()
        .all(|finding| finding.verdict() != Verdict::Bad);
    let roles = subject.roles.bits().into();
    let (programs, log) = programs::check(&parts, roles, may_try);
    if let Some(log) = log {
        details.push_str(&format!("\nthe verifier's last words\n{log}\n"));
    }
    findings.extend([
        jit::check(may_try && programs.verdict() == Verdict::Good),
        programs,
    ]);
    Examination { findings, details }
}

/// The findings that decide: if one of them is bad, no program can be loaded.
fn deciding_findings(
    subject: &Subject,
    kernel: &Kernel,
    probed: &features::Probed,
) -> Vec<Finding> {
    vec![
        privileges::check(kernel),
        version::judge(kernel),
        lockdown::judge(kernel, &subject.parts()),
        btf::judge(kernel),
        features::judge(probed, kernel),
        bpf_fs::check(&subject.bpf_dir),
    ]
}

async fn xdp_findings(subject: &Subject, adapters: &[Adapter], netlink: &Netlink) -> Vec<Finding> {
    let wish = subject.placed.as_ref().map(|placed| placed.me.xdp);
    let mut findings = Vec::new();
    for adapter in adapters {
        let mut found = xdp::check(adapter, wish);
        found.extend(virtio::check(adapter, wish).await);
        if adapters.len() > 1 {
            found.push(xdp::check_redirect(adapter, wish));
        }
        found.push(offloads::check_lro(adapter).await);
        if !xdp::is_native(adapter) {
            found.push(offloads::check_gro(adapter).await);
        }
        found.push(vlans::check(adapter, netlink).await);
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
    let services = subject.services();
    let relayed = subject.relayed();
    // Services that this node relays are left out: the node itself listens for them while it runs.
    let is_here =
        |(name, _): &&servers::NamedService| relayed.iter().all(|(other, _)| other != name);
    let here: Option<Vec<_>> =
        (services.as_ref()).map(|services| services.iter().filter(is_here).cloned().collect());
    findings.extend(servers::check(here.as_deref()));
    findings.extend(relayed::check(&relayed));
    if let (Some(services), Some(here)) = (&services, &here) {
        let interfaces: Vec<String> = (adapters.iter())
            .map(|adapter| adapter.name.clone())
            .collect();
        findings.push(nat::check(services, &interfaces));
        findings.push(proxies::check(here));
    }
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
    if placed.me.roles.is_ds() && !adapters.is_empty() {
        findings.push(response_route::check(placed, adapters, netlink).await);
    }
    if let Some(adapter) = adapters.first()
        && let Ok(link) = netlink.link_named(&adapter.name).await
    {
        findings.push(duplicates::check(placed, &link, &ways).await);
    }
    findings
}
