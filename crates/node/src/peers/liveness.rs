//! Which data servers live. The order of writes matters, because no request may be led to a data server that is marked
//! dead. When one has died, the choices are written first and then the mark. When one is back, the mark goes first.

use std::{net::IpAddr, time::Duration};

use anyhow::Result;
use baton_core::liveness::Change;
use baton_wire::{Address, Message};
use tracing::{info, warn};

use crate::{
    daemon::Daemon,
    logging::logged,
    peers::Dying,
    resume::{Fate, Wanted},
};

/// How often the other data servers are asked for the connections of a dead one.
const ASKED: u32 = 2;
/// How long they have to answer each time. Their programs answer, so this need only cover one round trip.
const PATIENCE: Duration = Duration::from_millis(50);

impl Daemon {
    /// Asks data servers that have not been heard for a while whether they live, and goes on asking the others for the
    /// connections of the dead.
    pub(crate) fn check_liveness(&mut self) {
        logged(self.ask_for_the_dead());
        for address in self.peers.liveness.tick(self.now()) {
            if let IpAddr::V4(to) = address.ip() {
                let question = Message::Alive {
                    turned: false,
                    dead: self.peers.liveness.is_dead(address),
                };
                self.messenger.queue(to, question);
            }
        }
    }

    /// Watches the data servers of the configuration except this node, which lives if it runs this.
    pub(crate) fn watch_liveness(&mut self) {
        let config = &self.local.config;
        let own = self.local.me.address;
        let others = config
            .data_servers()
            .filter(|node| node.address != own)
            .map(|node| Address::from(node.address.ip()));
        let (hello, dead_after) = (config.cluster.hello, config.cs.dead_after);
        let now = self.now();
        let all = config.nodes.len().saturating_sub(1);
        self.peers
            .liveness
            .watch(now, others, all, hello, dead_after);
        self.resume.follow(Wanted {
            keys: self.messenger.keys.clone(),
            clock_window: config.cluster.clock_window,
            slots: self.tables.addresses(&self.local),
            fronts: (config.connection_servers())
                .filter(|node| node.address != own)
                .filter_map(|node| node.address.ipv4())
                .collect(),
        });
    }

    /// Notes which data servers died and which are back. Returns those that died, for [`Daemon::mark_dead_servers`].
    pub(crate) fn note_liveness(&mut self) -> Result<Vec<Address>> {
        let now = self.now();
        let mut died = Vec::new();
        while let Some(change) = self.peers.liveness.poll() {
            match change {
                Change::Died(address) => {
                    warn!(
                        node = self.name_of(address),
                        "is dead: neither its daemon nor its program answers"
                    );
                    self.peers.membership.handle_death(now, address, true);
                    died.push(address);
                }
                Change::Lives(address) => {
                    info!(node = self.name_of(address), "lives again");
                    self.peers.dying.retain(|dying| dying.address != address);
                    (self.tables).mark_asked_for(&self.dataplane, address, false)?;
                    self.tables.mark_dead(&self.dataplane, address, false)?;
                    if let Some(slot) = self.tables.slot(address) {
                        self.resume.note(Fate::Alive { slot });
                    }
                    self.peers.membership.handle_death(now, address, false);
                }
            }
        }
        Ok(died)
    }

    /// Marks these data servers as dead and begins to ask for their connections. Call this when no choice leads to them
    /// anymore.
    pub(crate) fn mark_dead_servers(&mut self, died: &[Address]) -> Result<()> {
        for address in died {
            self.tables.mark_dead(&self.dataplane, *address, true)?;
            self.begin_to_ask_for(*address)?;
        }
        Ok(())
    }

    /// Begins to ask for the connections of data servers that were dead before this node came in front.
    pub(crate) fn look_after_the_dead(&mut self) -> Result<()> {
        let dead: Vec<_> = self.peers.liveness.dead().collect();
        for address in dead {
            self.begin_to_ask_for(address)?;
        }
        Ok(())
    }

    /// Begins to ask the other data servers for a dead one's connections. It may have handed a connection over and its
    /// MOVED may be lost, so the others are asked before a client is told that its connection is gone.
    fn begin_to_ask_for(&mut self, address: Address) -> Result<()> {
        (self.tables).mark_asked_for(&self.dataplane, address, true)?;
        self.peers.dying.retain(|dying| dying.address != address);
        self.peers.dying.push(Dying {
            address,
            next: self.now(),
            asked: 0,
        });
        self.ask_for_the_dead()
    }

    fn ask_for_the_dead(&mut self) -> Result<()> {
        let now = self.now();
        let due: Vec<Dying> = (self.peers.dying)
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
            self.peers.dying.push(Dying {
                next: now + PATIENCE,
                asked: dying.asked + 1,
                ..dying
            });
        }
        Ok(())
    }

    /// Tells the task that resumes responses whether this node is in front, because only the node in front looks after
    /// orphans.
    pub(crate) fn tell_where_this_is(&self) {
        let here = !self.is_on_standby();
        self.resume.note(Fate::Front { here });
    }

    fn name_of(&self, address: Address) -> String {
        (self.local.config.node_at(address.ip()))
            .map_or_else(|| address.ip().to_string(), |node| node.name.to_string())
    }
}
