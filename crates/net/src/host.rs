//! Changes to this host that are undone later: each is in the journal before it is made.

use std::net::IpAddr;

use crate::netlink::route::{LocalRoute, MarkRule};
use crate::undo::Step;
use crate::{Error, Netlink, Result, Sysctl, Undo};

/// The host's network, and the journal of what was changed on it.
#[derive(Debug)]
pub struct Host {
    netlink: Netlink,
    undo: Undo,
}

impl Host {
    /// The host, with a journal of the changes that were made earlier.
    pub fn new(netlink: Netlink, undo: Undo) -> Self {
        Self { netlink, undo }
    }

    /// The routing socket, for queries that change nothing.
    pub fn netlink(&self) -> &Netlink {
        &self.netlink
    }

    /// The journal, for steps that do not concern the network.
    pub fn undo(&mut self) -> &mut Undo {
        &mut self.undo
    }

    /// Gives `interface` the address as a /32 (or /128). Returns `false` if it already had the address; the address
    /// then stays at the end, unless an earlier start of this daemon added it.
    ///
    /// # Errors
    /// [`Error::NoLink`]; [`Error::System`].
    pub async fn add_address(&mut self, interface: &str, address: IpAddr) -> Result<bool> {
        if self.netlink.has_address(interface, address).await? {
            return Ok(false);
        }
        let step = Step::RemoveAddress {
            interface: interface.to_owned(),
            address,
        };
        self.undo.record(step.clone())?;
        let added = self.netlink.add_address(interface, address).await;
        self.settle(&step, added)
    }

    /// Removes an address that [`Host::add_address`] added, now or in an earlier start. Returns `false` if baton did
    /// not add it; it stays then.
    ///
    /// # Errors
    /// [`Error::System`].
    pub async fn remove_address(&mut self, interface: &str, address: IpAddr) -> Result<bool> {
        let step = Step::RemoveAddress {
            interface: interface.to_owned(),
            address,
        };
        if !self.undo.steps().contains(&step) {
            return Ok(false);
        }
        self.netlink.remove_address(interface, address).await?;
        self.undo.forget(&step)?;
        Ok(true)
    }

    /// Sets a kernel setting, and records its earlier value.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn set(&mut self, sysctl: &Sysctl, value: &str) -> Result<()> {
        let previous = sysctl.read()?;
        if previous == value {
            return Ok(());
        }
        let step = Step::Sysctl {
            path: sysctl.clone(),
            previous,
        };
        self.undo.record(step.clone())?;
        let done = sysctl.write(value).map(|_| true);
        self.settle(&step, done).map(|_| ())
    }

    /// Adds a policy rule. Returns `false` if it was already there.
    ///
    /// # Errors
    /// [`Error::System`].
    pub async fn add_rule(&mut self, rule: &MarkRule) -> Result<bool> {
        if self.netlink.has_rule(rule).await? {
            return Ok(false);
        }
        let step = Step::RemoveRule(rule.clone());
        self.undo.record(step.clone())?;
        let added = self.netlink.add_rule(rule).await;
        self.settle(&step, added)
    }

    /// Makes every IPv4 address local in a routing table. That table belongs to baton alone, so the route is removed at
    /// the end even if it was there before.
    ///
    /// # Errors
    /// [`Error::System`].
    pub async fn add_local_route(&mut self, route: &LocalRoute) -> Result<bool> {
        self.undo.record(Step::RemoveRoute(route.clone()))?;
        self.netlink.add_local_route(route).await
    }

    /// Undoes everything; see [`Undo::unwind`].
    pub async fn unwind(&mut self) -> Vec<Error> {
        self.undo.unwind(&self.netlink).await
    }

    /// Removes the step from the journal if the change was not made after all.
    fn settle(&mut self, step: &Step, done: Result<bool>) -> Result<bool> {
        if !matches!(done, Ok(true)) {
            self.undo.forget(step)?;
        }
        done
    }
}
