//! Which data servers live. The order of what is written matters: of one that died first the choices, then
//! the mark, of one that is back first the mark: so no request is ever led to one that is marked dead.

use std::{net::IpAddr, time::Duration};

use anyhow::Result;
use baton_core::{Moment, pulse::Change};
use baton_wire::{Address, Message};
use tracing::{info, warn};

use crate::{
    daemon::Daemon,
    logging::logged,
    resume::{Fate, Wanted},
};

/// The other data servers are asked so often for the connections of a dead one,
const ASKED: u32 = 2;
/// and have so long to answer each time. Their programs do: it is the time of a message and back.
const PATIENCE: Duration = Duration::from_millis(50);

/// A dead data server whose connections the others are asked for.
pub(crate) struct Dying {
    address: Address,
    next: Moment,
    asked: u32,
}

impl Daemon {
    /// Asks those that have not been heard for a while, and the others for the connections of the dead.
    pub(crate) fn feel_pulse(&mut self) {
        logged(self.ask_for_the_dead());
        for address in self.pulse.tick(self.now()) {
            if let IpAddr::V4(to) = address.ip() {
                let question = Message::Alive {
                    turned: false,
                    dead: self.pulse.is_dead(address),
                };
                self.outbox.push((to, question));
            }
        }
    }

    /// Watches the data servers of the configuration, this node not: who runs this, lives.
    pub(crate) fn watch_lives(&mut self) {
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
    pub(crate) fn hear_of_lives(&mut self) -> Result<Vec<Address>> {
        let now = self.now();
        let mut died = Vec::new();
        while let Some(change) = self.pulse.poll() {
            match change {
                Change::Died(address) => {
                    warn!(
                        node = self.name_of(address),
                        "is dead: neither its daemon nor its program answers"
                    );
                    self.membership.handle_death(now, address, true);
                    died.push(address);
                }
                Change::Lives(address) => {
                    info!(node = self.name_of(address), "lives again");
                    self.dying.retain(|dying| dying.address != address);
                    (self.tables).mark_asked_for(&self.dataplane, address, false)?;
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
    pub(crate) fn bury(&mut self, died: &[Address]) -> Result<()> {
        for address in died {
            self.tables.mark_dead(&self.dataplane, *address, true)?;
            self.begin_to_ask_for(*address)?;
        }
        Ok(())
    }

    /// The same for those who were dead before this node came in front.
    pub(crate) fn look_after_the_dead(&mut self) -> Result<()> {
        let dead: Vec<_> = self.pulse.dead().collect();
        for address in dead {
            self.begin_to_ask_for(address)?;
        }
        Ok(())
    }

    /// The dead one may have handed a connection on, and its word be lost. So before anybody is told that his connection is gone, the
    /// others are asked.
    fn begin_to_ask_for(&mut self, address: Address) -> Result<()> {
        (self.tables).mark_asked_for(&self.dataplane, address, true)?;
        self.dying.retain(|dying| dying.address != address);
        self.dying.push(Dying {
            address,
            next: self.now(),
            asked: 0,
        });
        self.ask_for_the_dead()
    }

    fn ask_for_the_dead(&mut self) -> Result<()> {
        let now = self.now();
        let due: Vec<Dying> = (self.dying)
            .extract_if(.., |dying| dying.next <= now)
            .collect();
        for dying in due {
            let slot = self.tables.slot(dying.address);
            if dying.asked == ASKED {
                (self.tables).mark_asked_for(&self.dataplane, dying.address, false)?;
                if let Some(slot) = slot {
                    self.resume.note(Fate::Dead { slot });
                }
                continue;
            }
            if let Some(slot) = slot {
                self.resume.note(Fate::Dying { slot });
            }
            self.dying.push(Dying {
                next: now + PATIENCE,
                asked: dying.asked + 1,
                ..dying
            });
        }
        Ok(())
    }

    /// Where this node is: what becomes of orphans is looked after in front only.
    pub(crate) fn tell_where_this_is(&self) {
        let here = !self.is_on_standby();
        self.resume.note(Fate::Front { here });
    }

    fn name_of(&self, address: Address) -> String {
        (self.place.config.node_at(address.ip()))
            .map_or_else(|| address.ip().to_string(), |node| node.name.to_string())
    }
}
