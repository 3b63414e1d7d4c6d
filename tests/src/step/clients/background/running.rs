//! The clients that run while steps happen, and the orders to them.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};
use std::thread::JoinHandle;

use super::super::load::running::Going;
use super::{stalls::Phases, tally::Tally};

/// The running clients.
pub struct Background {
    pub(super) clients: Vec<(String, JoinHandle<Tally>)>,
    pub(super) load: Option<Going>,
    pub(super) orders: Arc<Orders>,
}

/// The orders to the clients.
#[derive(Default)]
pub(super) struct Orders {
    /// Set when clients must end after the current page.
    pub(super) finish: AtomicBool,
    /// Set when clients must end at once.
    pub(super) abandon: AtomicBool,
    /// What is being done to the cluster meanwhile.
    pub(super) phases: Phases,
}

impl Background {
    /// Ends all clients at once, without judging them.
    pub fn abandon(self) {
        self.orders.abandon.store(true, Relaxed);
        // An error of the load is ignored, because an earlier one has ended the scenario.
        let _ = self.load.map(Going::end);
        for (_, client) in self.clients {
            let _ = client.join();
        }
    }
}

impl Orders {
    pub(super) fn ended(&self) -> bool {
        self.finish.load(Relaxed) || self.abandoned()
    }

    pub(super) fn abandoned(&self) -> bool {
        self.abandon.load(Relaxed)
    }
}
