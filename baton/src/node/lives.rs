//! Which data servers live. The order of what is written matters: of one that died first the choices, then
//! the mark, of one that is back first the mark: so no request is ever led to one that is marked dead.

use std::{net::IpAddr, time::Duration};

use anyhow::Result;
use baton_core::pulse::Change;
use baton_wire::{Address, Message};
use tracing::{info, warn};

use super::{
    daemon::Daemon,
    resume::{Fate, Wanted},
};

impl Daemon {
    /// Asks those that have not been heard for a while.
    pub(super) fn feel_pulse(&mut self) {
        let question = Message::Alive { turned: false };
        for address in self.pulse.tick(self.now()) {
            if let IpAddr::V4(to) = address.ip() {
                self.outbox.push((to, question.clone()));
            }
        }
    }

    /// Watches the data servers of the configuration, this node not: who runs this, lives.
    pub(super) fn watch_lives(&mut self) {
        let config = &self.place.config;
        let own = self.place.me.address;
        let others = config
            .data_servers()
            .filter(|node| node.address != own)
            .map(|node| Address::from(node.address.ip()));
        let (hello, dead_after) = (config.cluster.hello, config.cs.dead_after);
        let now = self.now();
        let all = config.nodes.len().saturating_sub(1);
        self.pulse.watch(now, others, all, hello, dead_after);
        self.resume.follow(Wanted {
            keys: self.keys.clone(),
            clock_window: config.cluster.clock_window,
            slots: self.tables.addresses(&self.place),
            fronts: (config.connection_servers())
                .filter(|node| node.address != own)
                .filter_map(|node| match node.address.ip() {
                    IpAddr::V4(address) => Some(address),
                    IpAddr::V6(_) => None,
                })
                .collect(),
        });
    }

    /// Takes note of who died and who is back, and returns the dead, for [`Daemon::bury`].
    pub(super) fn hear_of_lives(&mut self) -> Result<Vec<(Address, Duration)>> {
        let now = self.now();
        let mut died = Vec::new();
        while let Some(change) = self.pulse.poll() {
            match change {
                Change::Died(address, silent) => {
                    warn!(
                        node = self.name_of(address),
                        "is dead: neither its daemon nor its program answers"
                    );
                    self.membership.handle_death(now, address, true);
                    died.push((address, silent));
                }
                Change::Lives(address) => {
                    info!(node = self.name_of(address), "lives again");
                    self.tables.mark_dead(&self.dataplane, address, false)?;
                    if let Some(slot) = self.tables.slot(address) {
                        self.resume.note(Fate::Alive { slot });
                    }
                    self.membership.handle_death(now, address, false);
                }
            }
        }
        Ok(died)
    }

    /// Marks the dead, now that nobody is led to them any more, and has their connections looked after.
    pub(super) fn bury(&mut self, died: &[(Address, Duration)]) -> Result<()> {
        for (address, _) in died {
            self.tables.mark_dead(&self.dataplane, *address, true)?;
        }
        self.look_after_orphans(died);
        Ok(())
    }

    /// The same for those who were dead before this node came in front.
    pub(super) fn look_after_the_dead(&mut self) {
        let died: Vec<_> = self.pulse.dead(self.now()).collect();
        self.look_after_orphans(&died);
    }

    /// Where this node is: what becomes of orphans is looked after in front only.
    pub(super) fn tell_where_this_is(&self) {
        let here = !self.is_on_standby();
        self.resume.note(Fate::Front { here });
    }

    fn look_after_orphans(&mut self, died: &[(Address, Duration)]) {
        for (address, silent) in died {
            if let Some(slot) = self.tables.slot(*address) {
                self.resume.note(Fate::Dead {
                    slot,
                    silent: *silent,
                });
            }
        }
    }

    fn name_of(&self, address: Address) -> String {
        (self.place.config.node_at(address.ip()))
            .map_or_else(|| address.ip().to_string(), |node| node.name.to_string())
    }
}
