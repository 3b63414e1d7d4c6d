//! What all processes that speak TLS use of the daemon.

use std::{
    collections::HashMap,
    net::Ipv4Addr,
    sync::{Arc, Mutex, OnceLock},
};

use baton_agent::terminate::messages::Moving;
use baton_streams::Ask;
use tokio::sync::watch;

use super::{
    judge::Judge,
    moves::{Mover, Moves},
};
use crate::locked::locked;

/// The part of the daemon that the processes' links use.
pub struct Desk {
    pub judge: Arc<Judge>,
    /// The moves under way from here.
    pub moves: Moves,
    /// Set once there is a service whose connections may move.
    pub mover: OnceLock<Mover>,
    /// How each other data server is asked.
    asks: Mutex<HashMap<Ipv4Addr, Ask>>,
    counts: Mutex<Vec<(String, u64)>>,
}

impl Desk {
    /// Makes a desk without any service.
    pub fn new(judge: Judge) -> Self {
        Self {
            judge: Arc::new(judge),
            moves: Moves::default(),
            mover: OnceLock::new(),
            asks: Mutex::default(),
            counts: Mutex::default(),
        }
    }

    /// Sets how other data servers are asked.
    pub fn reach(&self, asks: HashMap<Ipv4Addr, Ask>) {
        *locked(&self.asks) = asks;
    }

    /// Has a connection move. Returns whether it has left its socket.
    pub async fn move_to(
        &self,
        next: Ipv4Addr,
        moving: &Moving,
        left: &mut watch::Receiver<bool>,
    ) -> bool {
        let ask = locked(&self.asks).get(&next).cloned();
        match (self.mover.get(), ask) {
            (Some(mover), Some(ask)) => mover.move_to(next, &ask, moving, left).await,
            _ => false,
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
}
