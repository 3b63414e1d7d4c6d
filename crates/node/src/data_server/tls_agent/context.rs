//! What all processes that speak TLS use of the daemon.

use std::{
    collections::HashMap,
    net::Ipv4Addr,
    sync::{Arc, Mutex, OnceLock},
};

use baton_agent::{
    Ends,
    terminate::{judge::RequestRules, messages::Moving, settings::Certificate},
};
use baton_streams::Ask;
use baton_tls::TicketKeyRing;
use tokio::{net::UnixStream, sync::watch};
use tracing::debug;

use super::{
    moves::Mover,
    news::News,
    relays::{Relays, relay},
};
use crate::{locked::locked, tables::AllChoices};

/// The part of the daemon that the processes' links use.
pub struct AgentContext {
    /// By which rules requests are judged, once that is known. The processes are told what changes.
    pub rules: watch::Sender<Option<Arc<RequestRules>>>,
    choices: watch::Receiver<AllChoices>,
    /// Set once there is a service whose connections may move.
    pub mover: OnceLock<Mover>,
    /// Requests of other data servers' connections.
    pub relays: Relays,
    /// The keys of session tickets that are known here. The processes are told what changes.
    pub ticket_keys: watch::Sender<TicketKeyRing>,
    /// How each other data server is asked.
    asks: Mutex<HashMap<Ipv4Addr, Ask>>,
    counts: Mutex<Vec<(String, u64)>>,
    certificates: Mutex<Vec<Certificate>>,
}

impl AgentContext {
    /// Makes the context of processes that have no service yet.
    pub fn new(choices: watch::Receiver<AllChoices>) -> Self {
        Self {
            rules: watch::Sender::default(),
            choices,
            mover: OnceLock::new(),
            relays: Relays::default(),
            ticket_keys: watch::Sender::default(),
            asks: Mutex::default(),
            counts: Mutex::default(),
            certificates: Mutex::default(),
        }
    }

    /// What a process is told.
    pub fn news(&self) -> News {
        let (keys, rules) = (self.ticket_keys.subscribe(), self.rules.subscribe());
        News::new(keys, rules, self.choices.clone())
    }

    /// Sets how other data servers are asked.
    pub fn reach(&self, asks: HashMap<Ipv4Addr, Ask>) {
        *locked(&self.asks) = asks;
    }

    fn asking(&self, next: Ipv4Addr) -> Option<Ask> {
        locked(&self.asks).get(&next).cloned()
    }

    /// The slot of a data server to which requests may go.
    fn slot(&self, address: Ipv4Addr) -> Option<u16> {
        let rules = self.rules.borrow();
        let mut servers = rules.as_ref()?.servers.iter();
        servers
            .find(|(_, one)| **one == address)
            .map(|(slot, _)| *slot)
    }

    /// Has a connection move. Returns whether it has left its socket.
    pub async fn move_to(
        &self,
        next: Ipv4Addr,
        moving: &Moving,
        left: &mut watch::Receiver<bool>,
    ) -> bool {
        match (self.mover.get(), self.slot(next), self.asking(next)) {
            (Some(mover), Some(slot), Some(ask)) => mover.move_to(slot, &ask, moving, left).await,
            _ => false,
        }
    }

    /// Relays requests of the agent to another data server, until one of them ends.
    pub async fn relay(&self, agent: UnixStream, next: Ipv4Addr, ends: Ends) {
        let Some(ask) = self.asking(next) else {
            return;
        };
        if let Err(error) = relay(agent, ends, &ask).await {
            debug!(%next, %error, "requests to another data server broke off");
        }
    }

    /// Ends the move of a connection from here, before it comes back.
    pub fn end_move(&self, ends: Ends) {
        if let Some(mover) = self.mover.get() {
            mover.moves.end(ends);
        }
    }

    /// Notes the counters of the process that serves.
    pub fn count(&self, counts: Vec<(String, u64)>) {
        *locked(&self.counts) = counts;
    }

    /// The counters of the process, with their metrics' labels.
    pub fn counts(&self) -> Vec<(String, u64)> {
        locked(&self.counts).clone()
    }

    /// Notes the certificates that the process shows clients.
    pub fn show(&self, certificates: Vec<Certificate>) {
        *locked(&self.certificates) = certificates;
    }

    /// The certificates that the process shows clients.
    pub fn certificates(&self) -> Vec<Certificate> {
        locked(&self.certificates).clone()
    }
}
