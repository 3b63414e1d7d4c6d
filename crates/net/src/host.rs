//! Changes to this host that are taken back: each is journaled before it is made.

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
    /// A host with the journal of what is changed already.
    pub fn new(netlink: Netlink, undo: Undo) -> Self {
        Self { netlink, undo }
    }

    /// For questions that change nothing.
    pub fn netlink(&self) -> &Netlink {
        &self.netlink
    }

    /// The journal, for steps that are not the network's.
    pub fn undo(&mut self) -> &mut Undo {
        &mut self.undo
    }

    /// Gives `interface` the address as a /32 (or /128). `false`: it had it already, and then it
    /// is left alone at the end unless an earlier start of this daemon added it.
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

    /// Takes away an address that [`Host::add_address`] added, now or in an earlier start.
    /// `false`: it was not ours, and stays.
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

    /// Sets a setting.
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

    /// Adds a policy rule. `false`: it was there already.
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

    /// Makes every IPv4 address local in a table of its own. The table is ours alone, so the route
    /// is removed at the end even if it was there before.
    ///
    /// # Errors
    /// [`Error::System`].
    pub async fn add_local_route(&mut self, route: &LocalRoute) -> Result<bool> {
        self.undo.record(Step::RemoveRoute(route.clone()))?;
        self.netlink.add_local_route(route).await
    }

    /// Takes everything back; see [`Undo::unwind`].
    pub async fn unwind(&mut self) -> Vec<Error> {
        self.undo.unwind(&self.netlink).await
    }

    /// What was not changed after all needs no step back.
    fn settle(&mut self, step: &Step, done: Result<bool>) -> Result<bool> {
        if !matches!(done, Ok(true)) {
            self.undo.forget(step)?;
        }
        done
    }
}
