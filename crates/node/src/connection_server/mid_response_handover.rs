//! Responses under way leave data servers that drain, if their service has `resume = true`. The task that resumes the
//! responses of dead data servers (`resume`) also moves these. This module tells it which data servers drain.

use std::collections::BTreeSet;

use crate::{daemon::Daemon, resume::Fate};

impl Daemon {
    /// Tells the task which data servers drain, so that it looks for their responses. This node is left out, because
    /// its own program cannot send anything to itself.
    pub(crate) fn move_busy(&mut self) {
        if !self.local.me.roles.is_cs() || self.is_on_standby() {
            return;
        }
        let own = self.local.me.address;
        let nodes = self.peers.membership.cluster().nodes();
        let draining: BTreeSet<u16> = nodes
            .filter(|node| {
                node.address.ip() != own.ip() && self.peers.membership.is_draining(node.address)
            })
            .filter_map(|node| self.tables.slot(node.address))
            .collect();
        for slot in self.resume.draining.difference(&draining) {
            self.resume.note(Fate::Undrained { slot: *slot });
        }
        for slot in &draining {
            self.resume.note(Fate::Drains { slot: *slot });
        }
        self.resume.draining = draining;
    }
}
