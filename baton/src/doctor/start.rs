//! The checks that a node makes when it starts, to decide whether it can work here.

use anyhow::{Result, bail};
use baton_dataplane::kernel::Kernel;
use baton_net::Netlink;

use super::{
    deciding_findings,
    finding::{Finding, Verdict},
    subject::{Placed, Subject},
    xdp_findings,
};
use crate::doctor::{
    kernel::{features, jit},
    network::interface,
    servers::tcp_settings,
};

/// The bad findings, in the doctor's words.
pub struct BeforeStart {
    /// Findings that keep every program from being loaded.
    deciding: Vec<Finding>,
    /// Findings with which the node starts, but does not work, or not for every client, until they are mended.
    pub warnings: Vec<Finding>,
}

/// Makes the checks and changes nothing. Whether the verifier accepts the programs shows only when they are loaded.
pub async fn before_start(placed: Placed, netlink: &Netlink) -> BeforeStart {
    let subject = Subject::placed(placed);
    let parts = subject.parts();
    // An I/O server and a dispatcher load no programs.
    if parts.is_empty() {
        return BeforeStart::of(Vec::new(), Vec::new());
    }
    let kernel = Kernel::look();
    let probed = features::look(&parts, &kernel);
    let mut deciding = deciding_findings(&subject, &kernel, &probed);
    // If this network namespace does not show the setting, loading the programs shows whether they are compiled.
    deciding.push(jit::check(true));

    let mut warnings = Vec::new();
    let node = subject.placed.as_ref().map(|placed| &placed.me);
    let chosen = interface::choose(None, node, netlink).await;
    let adapters: Vec<_> = chosen.into_iter().filter_map(Result::ok).collect();
    warnings.extend(adapters.iter().map(interface::judge));
    if subject.roles.is_cs() || subject.roles.is_switch() {
        warnings.extend(xdp_findings(&subject, &adapters, netlink).await);
    }
    if subject.roles.is_ds() {
        warnings.extend(tcp_settings::check());
    }
    BeforeStart::of(deciding, warnings)
}

impl BeforeStart {
    fn of(deciding: Vec<Finding>, warnings: Vec<Finding>) -> Self {
        let bad = |findings: Vec<Finding>| {
            let bad = |finding: &Finding| finding.verdict() == Verdict::Bad;
            findings.into_iter().filter(bad).collect()
        };
        Self {
            deciding: bad(deciding),
            warnings: bad(warnings),
        }
    }

    /// Returns without a message if the node can work here.
    ///
    /// # Errors
    /// Something keeps the node from working here; the error lists each cause with its remedy.
    pub fn must_be_able(&self) -> Result<()> {
        if self.deciding.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> = self.deciding.iter().map(ToString::to_string).collect();
        bail!("this machine cannot run the node: {}", lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_refuses_and_the_rest_is_a_warning() {
        let good = || Finding::good("a", "fine");
        let bad = |name| Finding::bad(name, "none", "Get one.");
        let able = BeforeStart::of(vec![good()], vec![bad("syncookies"), good()]);
        assert!(able.must_be_able().is_ok());
        assert_eq!(able.warnings, [bad("syncookies")]);
        let unable = BeforeStart::of(vec![good(), bad("btf")], Vec::new());
        let said = unable.must_be_able().map_err(|error| error.to_string());
        assert_eq!(
            said,
            Err("this machine cannot run the node: btf: none. Get one.".to_owned())
        );
    }
}
