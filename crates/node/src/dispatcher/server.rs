//! The dispatcher that chooses for other nodes' data servers. It makes its choices in the same way as they do.

use std::{collections::HashMap, net::Ipv4Addr};

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
    daemon::Daemon,
    tables::{self, endpoint, policy, pools},
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

    /// Chooses anew among the servers that are usable now, for each pool of these services.
    fn follow<'a>(
        &mut self,
        now: Moment,
        me: &NodeName,
        services: impl Iterator<Item = &'a baton_config::Service>,
        membership: &Membership,
    ) -> Result<()> {
        let mut kept = Vec::new();
        for service in services {
            let at = tables::service_at(service)?;
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
                self.server.set(id, policy.number(), choices);
                kept.push(id);
            }
        }
        self.server.keep(&kept);
        self.choosers.retain(|id, _| kept.contains(id));
        Ok(())
    }
}

impl Daemon {
    /// Chooses anew for the data servers that ask this node.
    pub(crate) fn follow_dispatcher(&mut self) -> Result<()> {
        let now = self.now();
        let own = &self.local.me.name;
        let services = (self.local.config.services.iter())
            .filter(|service| service.dispatcher.as_ref() == Some(own));
        self.dispatcher
            .follow(now, own, services, &self.peers.membership)
    }

    /// Answers a data server that asks which one is to serve a request.
    pub(crate) fn handle_query(&mut self, sender: Ipv4Addr, query: &Query) {
        let reply = baton_wire::Message::Reply(self.dispatcher.answer(query));
        self.messenger.queue(sender, reply);
    }
}
