//! Planned migration: this connection server's TCB entries go over to another connection server, and then the cluster
//! addresses do. This module also takes the entries that other connection servers send here.
//!
//! ```text
//!  baton migrate --control--> request.rs --Order--> task.rs ==TCBS==> task.rs of the other node
//!                                                     |  ^
//!                                          transfer.rs: the daemon moves the addresses (failover)
//! ```
//!
//! If a migration is asked for at another node than its source, that node orders it from the source (`order.rs`).
//!
//! A task on a thread of its own reads and writes the table and talks to the other node, because thousands of messages
//! come in milliseconds and the daemon has other things to do. `baton_core::migration` makes the decisions.

mod order;
mod request;
mod state;
mod table;
mod task;
mod transfer;
mod ways;

use std::{
    net::Ipv4Addr,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use anyhow::{Context as _, Result};
use baton_wire::KeyRing;
use tokio::sync::{mpsc, watch};

pub use self::{
    order::Afar,
    state::{Doing, Ended, Running, State, Summary},
    task::COMMANDS,
};
use self::{
    table::Table,
    task::Task,
    transfer::{Pending, Transfer},
};
use crate::{
    connection_server::failover::leftovers::Leftovers, local_node::LocalNode, locked::locked,
    peers::keys,
};

/// The daemon's handle to the task that migrates: gives it orders, answers its transfers and reads its state.
pub struct Migrations {
    shared: Arc<Shared>,
    orders: mpsc::Sender<Order>,
    transfers: mpsc::Receiver<Transfer>,
    wanted: watch::Sender<Wanted>,
    pending: Option<Pending>,
    afar: Afar,
}

/// The state that the daemon and the task share.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
}

/// What the task needs to know of the configuration.
#[derive(Clone)]
struct Wanted {
    keys: KeyRing,
    clock_window: Duration,
    /// The other connection servers to which clients' packets for the same addresses may come.
    partners: Vec<Ipv4Addr>,
    /// The addresses and names of all nodes.
    nodes: Vec<(Ipv4Addr, String)>,
}

/// The daemon's order to the task to begin a migration to another node.
struct Order {
    to: Ipv4Addr,
    name: String,
    /// Whether baton does not move the addresses itself, so that they are moved by other means later.
    by_hand: bool,
}

impl Migrations {
    /// Starts the task, which ends with the daemon.
    /// Only connection servers pass `leftovers`.
    pub fn start(
        dataplane: &baton_dataplane::Dataplane,
        local: &LocalNode,
        leftovers: Option<Leftovers>,
    ) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let (orders, order_receiver) = mpsc::channel(1);
        let (transfer_sender, transfers) = mpsc::channel(1);
        let (wanted, wanted_receiver) = watch::channel(Wanted::of(local));
        let table = (dataplane.as_connection_server().zip(leftovers))
            .map(|(server, leftovers)| Table::open(server, &local.links, leftovers));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot make the runtime of the thread that migrates")?;
        let task = {
            let _within = runtime.enter();
            Task::new(
                local,
                table.transpose()?,
                Arc::clone(&shared),
                wanted_receiver,
                order_receiver,
                transfer_sender,
            )?
        };
        task.start(runtime)?;
        Ok(Self {
            shared,
            orders,
            transfers,
            wanted,
            pending: None,
            afar: Afar::default(),
        })
    }

    /// Gives the task the configuration after a reload.
    pub fn follow(&self, local: &LocalNode) {
        self.wanted.send_replace(Wanted::of(local));
    }

    /// Returns the state of the current or last migration, and the totals since the daemon started.
    pub fn state(&self) -> State {
        self.shared.state().clone()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

impl Wanted {
    fn of(local: &LocalNode) -> Self {
        let v4 = |node: &baton_config::Node| node.address.ipv4();
        Self {
            keys: keys::key_ring(&local.config, &local.me),
            clock_window: local.config.cluster.clock_window,
            partners: request::partners(local).filter_map(v4).collect(),
            nodes: (local.config.nodes.iter())
                .filter_map(|node| Some((v4(node)?, node.name.to_string())))
                .collect(),
        }
    }
}
