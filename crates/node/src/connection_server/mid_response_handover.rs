//! Responses under way leave data servers that drain, where their service has `resume = true`. The task that
//! resumes those of the dead (`resume`) moves those of the living too: it is told who drains.

use std::collections::BTreeSet;

use crate::{daemon::Daemon, resume::Fate};

impl Daemon {
    /// Has the task look, if a data server drains. Not for this node itself: its own program cannot send
    /// anything to it.
    pub(crate) fn move_busy(&mut self) {
        if !self.place.me.roles.is_cs() || self.is_on_standby() {
            return;
        }
        let own = self.place.me.address;
        let nodes = self.membership.cluster().nodes();
        let draining: BTreeSet<u16> = nodes
            .filter(|node| {
                node.address.ip() != own.ip() && self.membership.is_draining(node.address)
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
