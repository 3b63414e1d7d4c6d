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
mod shared;
mod state;
mod table;
mod task;
mod transfer;
mod ways;

use std::{sync::Arc, time::Instant};

use anyhow::{Context as _, Result};
use baton_core::operator_order::{GivenOrder, TakenOrders};
use tokio::sync::{mpsc, oneshot, watch};

use self::{
    shared::{Order, Shared, Transfer, Wanted},
    table::Table,
    task::Task,
};
pub use self::{
    state::{Doing, Ended, Running, State, Summary},
    task::COMMANDS,
};
use crate::{connection_server::failover::leftovers::Leftovers, local_node::LocalNode};

/// The order that this node has sent to another node, and the orders that others have sent to this node.
#[derive(Default)]
struct Afar {
    ours: Option<Ours>,
    theirs: TakenOrders<Became>,
}

struct Ours {
    from: String,
    to: String,
    order: GivenOrder,
}

/// What became of an order to migrate.
enum Became {
    /// The migration began. It has this number among those that have begun here.
    Begun(u64),
    /// The order was refused, for this reason.
    Refused(String),
}

/// A transfer that has begun and is not answered yet.
struct Pending {
    done: oneshot::Sender<Result<(), String>>,
    until: Instant,
}

/// The daemon's handle to the task that migrates: gives it orders, answers its transfers and reads its state.
pub struct Migrations {
    shared: Arc<Shared>,
    orders: mpsc::Sender<Order>,
    transfers: mpsc::Receiver<Transfer>,
    wanted: watch::Sender<Wanted>,
    pending: Option<Pending>,
    afar: Afar,
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
