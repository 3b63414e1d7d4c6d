//! Judges for the TLS agent which data server is to answer a request, by the same rules and choices as the door.

use std::{
    collections::HashMap,
    net::{Ipv4Addr, SocketAddrV4},
    sync::Mutex,
    time::{Duration, Instant},
};

use baton_agent::{Ends, terminate::messages::Judgement};
use baton_core::rules::Request;
use baton_wire::Address;
use tokio::time::sleep;

use crate::{
    data_server::current_rules::RuleReader,
    locked::locked,
    tables::choices::{Choice, Choices},
};

/// A request waits this long for a data server that can answer it.
const NOBODY: Duration = Duration::from_secs(2);
/// A request waits this long for a daemon that has just begun to know its rules.
const BEGINS: Duration = Duration::from_secs(10);
/// The time between two looks.
const AGAIN: Duration = Duration::from_millis(20);

/// What judges requests.
pub struct Judge {
    rules: RuleReader,
    choices: Choices,
    own: Address,
    /// The id and the own pool of each service, by its address.
    services: Mutex<HashMap<SocketAddrV4, (u16, u16)>>,
}

impl Judge {
    /// Makes a judge at the data server with this address.
    pub fn new(rules: RuleReader, choices: Choices, own: Ipv4Addr) -> Self {
        Self {
            rules,
            choices,
            own: own.into(),
            services: Mutex::default(),
        }
    }

    /// Sets the services whose requests are judged: their ids and own pools, by address.
    pub fn serve(&self, services: HashMap<SocketAddrV4, (u16, u16)>) {
        *locked(&self.services) = services;
    }

    /// Says which data server is to answer the request with this head. If there is none, or this is not known yet because
    /// the daemon has just begun, the request waits for a while.
    pub async fn judge(&self, ends: Ends, head: &[u8]) -> Judgement {
        let begin = Instant::now();
        loop {
            let judged = self.judge_now(ends, head);
            let patience = match judged {
                Some(Judgement::Nobody) => NOBODY,
                None => BEGINS,
                Some(judged) => return judged,
            };
            if begin.elapsed() > patience {
                return Judgement::Nobody;
            }
            sleep(AGAIN).await;
        }
    }

    /// Says the same as far as it is known now.
    pub fn judge_now(&self, ends: Ends, head: &[u8]) -> Option<Judgement> {
        let (id, own_pool) = *locked(&self.services).get(&ends.cluster)?;
        let rule_set = self.rules.rule_set()?;
        let own = *rule_set.servers.get(&self.own)?;
        let client = Address::from(*ends.client.ip());
        let choice = match head {
            [] => self.choices.choose(own_pool, own, client, b"/"),
            head => {
                let request = Request::read(head).ok()??;
                let (lead, _) = self.rules.of(id, &request)?;
                let pool = lead.map_or(own_pool, |lead| lead.pool);
                let path = request.path().as_bytes();
                self.choices.choose(pool, own, client, path)
            }
        };
        Some(match choice {
            Choice::Own => Judgement::Here,
            Choice::Nobody => Judgement::Nobody,
            Choice::Other(slot) => {
                let mut servers = rule_set.servers.iter();
                let (address, _) = servers.find(|(_, index)| **index == slot)?;
                Judgement::Elsewhere(address.ipv4()?)
            }
        })
    }

    /// The slot of a data server.
    pub fn slot(&self, address: Ipv4Addr) -> Option<u16> {
        let address = Address::from(address);
        self.rules.rule_set()?.servers.get(&address).copied()
    }
}
