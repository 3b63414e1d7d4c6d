//! The dispatcher that chooses for other nodes' data servers. It makes its choices in the same way as they do.

use std::collections::HashMap;

use anyhow::Result;
use baton_config::NodeName;
use baton_core::{
    Moment,
    dispatcher::DispatcherServer,
    membership::Membership,
    policy::{Chooser, Server},
    slots::Slot,
};
use baton_wire::{Address, Query, Reply};

use crate::{
    local_node::LocalNode,
    places::{endpoint, service_at},
    tables::{policy, pools},
};

/// The choices of data servers for the services that name this node as their dispatcher.
#[derive(Default)]
pub struct Dispatcher {
    server: DispatcherServer,
    choosers: HashMap<u64, Chooser>,
}

impl Dispatcher {
    /// Returns the answer to a question.
    pub fn answer(&mut self, query: &Query) -> Reply {
        self.server.answer(query)
    }

    /// Whether some choices may have to change because of the servers' loads, although the servers are the same.
    pub fn is_due(&self, now: Moment) -> bool {
        let timeouts = self.choosers.values().filter_map(Chooser::next_timeout);
        timeouts.min().is_some_and(|timeout| timeout <= now)
    }

    /// Chooses anew among the servers that are usable now, for each pool of the services that name this node.
    pub fn follow(
        &mut self,
        now: Moment,
        local: &LocalNode,
        membership: &Membership,
    ) -> Result<()> {
        let me = &local.me.name;
        let services = (local.config.services.iter())
            .filter(|service| service.dispatcher.as_ref() == Some(me));
        let mut kept = Vec::new();
        for service in services {
            let at = service_at(service)?;
            let usable = membership.usable(endpoint(at));
            for pool in pools(at, service) {
                let members: Vec<_> = (usable.into_iter())
                    .flat_map(|usable| usable.among(|server| pool.has(server)))
                    .zip(0u8..)
                    .collect();
                let servers: Vec<Server<'_>> = members
                    .iter()
                    .filter_map(|(server, index)| {
                        let weight = pool.weight(&server.name, server.weight)?;
                        Some(Server {
                            slot: Slot::from(*index),
                            name: &server.name,
                            weight,
                            load: membership.load(server.address, endpoint(at)),
                        })
                    })
                    .collect();
                let slot = |name: &NodeName| {
                    let found = members
                        .iter()
                        .find(|(server, _)| server.name == name.as_str());
                    found.map(|(_, index)| Slot::from(*index))
                };
                let (id, policy) = (pool.id.number(), policy(&pool, me, slot));
                let chooser = self
                    .choosers
                    .entry(id)
                    .or_insert_with(|| Chooser::new(policy));
                if chooser.policy() != policy {
                    *chooser = Chooser::new(policy);
                }
                let address = |index: &u16| {
                    let member = members.get(usize::from(*index));
                    member.map(|(server, _)| server.address)
                };
                let choices: Vec<Address> = chooser
                    .choices(now, &servers)
                    .iter()
                    .filter_map(address)
                    .collect();
                self.server.set(id, policy.number(), &choices);
                kept.push(id);
            }
        }
        self.server.keep(&kept);
        self.choosers.retain(|id, _| kept.contains(id));
        Ok(())
    }
}
