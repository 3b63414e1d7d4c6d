//! The task that migrates: it reads and writes the table, and talks to the other node.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use baton_abi::{DataServer, LCCP_TAKEN, LCCP_TCBS};
use baton_core::{
    Moment,
    migration::{Failure, Happened, Receiver, Report, Sender, Step},
};
use baton_dataplane::sys;
use baton_net::LccpSocket;
use baton_wire::{Address, Arrival, Message, Taken, TakenRefusal, Tcbs};
use tokio::{
    runtime::Runtime,
    sync::{mpsc, oneshot, watch},
    time::sleep,
};
use tracing::{debug, error, info, warn};

use super::{
    shared::{Order, Shared, Transfer, Wanted},
    state::{Ended, Running, Summary},
    table::Table,
    ways::Ways,
};
use crate::{
    local_node::LocalNode,
    logging::logged,
    peers::{heartbeat::clock_now, sealing},
};

/// At most this many messages are read before the task looks at anything else.
const AT_ONCE: usize = 64;

/// How long the task sleeps when nothing is due. It still wakes up to forget a sender that was silent for long.
const IDLE: Duration = Duration::from_secs(1);

/// Requests never wait longer than this, whatever happens.
const LONGEST_HOLD: Duration = Duration::from_secs(1);

/// How long clients' packets are passed on: until the last neighbour has learned where the address is. Linux
/// asks anew after a minute at most (`base_reachable_time`), and hears no news within a second of the last
/// (`locktime`).
const LINGER: Duration = Duration::from_secs(60);

/// The commands that this task hears. No other socket of the daemon needs them.
pub const COMMANDS: [u8; 2] = [LCCP_TCBS as u8, LCCP_TAKEN as u8];

pub struct Task {
    socket: LccpSocket,
    /// The TCB table; `None` if this node is no connection server.
    table: Option<Table>,
    ways: Ways,
    shared: Arc<Shared>,
    wanted: watch::Receiver<Wanted>,
    orders: mpsc::Receiver<Order>,
    transfers: mpsc::Sender<Transfer>,
    epoch: Instant,
    receiver: Receiver,
    outbound: Option<Outbound>,
}

/// A migration from here.
struct Outbound {
    order: Order,
    /// The way on which requests go on to the other node once it has all entries; `None` if they stay here.
    way: Option<DataServer>,
    sender: Sender,
    transferring: Option<oneshot::Receiver<Result<(), String>>>,
}

impl Task {
    pub fn new(
        local: &LocalNode,
        table: Option<Table>,
        shared: Arc<Shared>,
        wanted: watch::Receiver<Wanted>,
        orders: mpsc::Receiver<Order>,
        transfers: mpsc::Sender<Transfer>,
    ) -> Result<Self> {
        let socket = LccpSocket::open(local.address, local.config.cluster.protocol.number())?;
        socket.hear_only(&COMMANDS)?;
        Ok(Self {
            socket,
            table,
            ways: Ways::of(local),
            shared,
            wanted,
            orders,
            transfers,
            epoch: Instant::now(),
            receiver: Receiver::default(),
            outbound: None,
        })
    }

    /// Starts the thread, which runs until the daemon ends.
    pub fn start(self, runtime: Runtime) -> Result<()> {
        let run = move || {
            if let Err(error) = sys::run_first() {
                debug!("the migration thread gets no priority over other threads: {error}");
            }
            runtime.block_on(self.run());
        };
        std::thread::Builder::new()
            .name("migrate".into())
            .spawn(run)
            .context("cannot start the thread that migrates")?;
        Ok(())
    }

    async fn run(mut self) {
        let mut buffer = vec![0; LccpSocket::MAX_PACKET];
        loop {
            let wait = self.advance().await;
            let transferred = transferred(&mut self.outbound);
            tokio::select! {
                received = self.socket.recv_from(&mut buffer) => match received {
                    Ok(received) => {
                        let (sender, payload) = (received.sender, received.payload.to_vec());
                        let came = received.came();
                        self.handle(sender, &payload, came).await;
                        self.drain(&mut buffer).await;
                    }
                    Err(error) => debug!("{error}"),
                },
                result = transferred => {
                    if let Some(outbound) = &mut self.outbound {
                        outbound.transferring = None;
                        outbound.sender.transferred(result);
                    }
                }
                Some(order) = self.orders.recv() => self.begin(order).await,
                changed = self.wanted.changed() => if changed.is_err() {
                    // Without a sender the daemon has ended.
                    return;
                },
                () = sleep(wait) => {}
            }
        }
    }

    async fn begin(&mut self, order: Order) {
        info!(to = order.name, "migrates its TCB entries");
        let way = match order.by_hand {
            false => self.ways.to(order.to).await,
            true => None,
        };
        if let Some(table) = &mut self.table {
            logged(table.look_up());
        }
        // The wall clock is above the numbers of all earlier migrations, also those of an earlier daemon.
        let number = clock_now().as_nanos();
        self.outbound = Some(Outbound {
            order,
            way,
            sender: Sender::new(self.now(), number),
            transferring: None,
        });
    }

    /// Handles the messages that have come meanwhile, so that they are acknowledged together.
    async fn drain(&mut self, buffer: &mut [u8]) {
        for _ in 0..AT_ONCE {
            match self.socket.try_recv_from(buffer) {
                Ok(Some(received)) => {
                    let (sender, payload) = (received.sender, received.payload.to_vec());
                    let came = received.came();
                    self.handle(sender, &payload, came).await;
                }
                Ok(None) => break,
                Err(error) => debug!("{error}"),
            }
        }
        self.receiver.pause();
        self.answer().await;
    }

    async fn handle(&mut self, sender: Ipv4Addr, payload: &[u8], came: Arrival) {
        let (keys, window) = {
            let wanted = self.wanted.borrow();
            (wanted.keys.clone(), wanted.clock_window)
        };
        let received = sealing::open(self.socket.own(), &keys, window, sender, payload, came);
        match received.map(|received| received.message) {
            Ok(Message::Tcbs(batch)) => {
                self.take(sender, &batch);
                self.answer().await;
            }
            Ok(Message::Taken(taken)) => {
                let now = self.now();
                if let Some(outbound) = &mut self.outbound
                    && outbound.order.to == sender
                {
                    outbound.sender.handle_taken(now, &taken);
                }
            }
            Ok(_) => {}
            Err(reject) => {
                let mut state = self.shared.state();
                *state.rejected.entry(reject.counter()).or_default() += 1;
                drop(state);
                debug!(%sender, "dropped a message: {reject}");
            }
        }
    }

    /// Takes a batch of entries that has come.
    fn take(&mut self, sender: Ipv4Addr, batch: &Tcbs) {
        let allowed = self.allowed(sender);
        let now = self.now();
        let is_new = self.receiver.handle(now, sender.into(), batch, allowed);
        self.log_what_happened();
        let Some(table) = self.table.as_mut().filter(|_| is_new) else {
            return;
        };
        let prepared = if batch.flags.first {
            table.prepare()
        } else {
            Ok(())
        };
        match prepared.and_then(|()| table.write(batch.entries())) {
            Ok(took) => {
                self.receiver.took(took.taken, took.left_out);
                let totals = &mut self.shared.state().totals;
                totals.taken += u64::from(took.taken);
                totals.left_out += took.left_out.iter().copied().map(u64::from).sum::<u64>();
            }
            Err(error) => {
                error!("cannot write TCB entries, and takes no more: {error:#}");
                self.receiver.fail();
            }
        }
        self.log_what_happened();
    }

    fn allowed(&self, sender: Ipv4Addr) -> Result<(), TakenRefusal> {
        let wanted = self.wanted.borrow();
        if self.table.is_none() || wanted.partners.is_empty() {
            return Err(TakenRefusal::NoConnectionServer);
        }
        if !wanted.partners.contains(&sender) {
            return Err(TakenRefusal::Stranger);
        }
        Ok(())
    }

    async fn answer(&mut self) {
        if let Some((to, taken)) = self.receiver.poll()
            && let IpAddr::V4(to) = to.ip()
        {
            self.say(&Message::Taken(taken), to).await;
        }
    }

    /// Does what is due, and returns for how long nothing more will be due.
    async fn advance(&mut self) -> Duration {
        self.log_what_happened();
        loop {
            let now = self.now();
            let Some(outbound) = &mut self.outbound else {
                return IDLE;
            };
            let step = outbound.sender.poll(now);
            // `end` sets both that nothing runs and how the migration ended, so that a reader always sees one of the
            // two.
            if let Some(running) = Running::of(outbound.sender.progress()) {
                self.shared.state().running = Some(running);
            }
            let to = outbound.order.to;
            match step {
                Some(Step::Send(batch)) => self.say(&Message::Tcbs(batch), to).await,
                Some(Step::Read) => self.read(),
                Some(Step::Hold) => self.hold(),
                Some(Step::Transfer) => {
                    if let (Some(table), Some(way)) = (&self.table, &outbound.way) {
                        logged(table.pass_on(way, LINGER));
                    }
                    let (done, transferring) = oneshot::channel();
                    outbound.transferring = Some(transferring);
                    // Sending fails only if the daemon has ended, and then this task ends too.
                    let _ = self.transfers.send(Transfer { to, done }).await;
                }
                Some(Step::End(result)) => self.end(result),
                None => {
                    let next = outbound.sender.next_timeout();
                    return next.map_or(IDLE, |next| next.since(now));
                }
            }
        }
    }

    fn read(&mut self) {
        let (Some(table), Some(outbound)) = (&mut self.table, &mut self.outbound) else {
            return;
        };
        match table.read() {
            Ok(entries) => outbound.sender.read(entries),
            Err(error) => {
                error!("cannot read the TCP table: {error:#}");
                outbound.sender.abort();
            }
        }
    }

    /// Has requests that begin connections wait from now on.
    fn hold(&mut self) {
        let (Some(table), Some(outbound)) = (&self.table, &mut self.outbound) else {
            return;
        };
        match table.hold(LONGEST_HOLD) {
            Ok(()) => outbound.sender.held(),
            Err(error) => {
                error!("cannot hold back first requests: {error:#}");
                outbound.sender.abort();
            }
        }
    }

    fn end(&mut self, result: Result<Report, Failure>) {
        let Some(Outbound { order, way, .. }) = self.outbound.take() else {
            return;
        };
        let passes_on = way.is_some() && matches!(result, Ok(_) | Err(Failure::LastPassLost(_)));
        if let Some(table) = &self.table {
            logged(if passes_on {
                table.let_go()
            } else {
                table.release()
            });
        }
        let mut state = self.shared.state();
        state.running = None;
        state.ended = Some(match result {
            Ok(report) => {
                let summary = Summary::of(&report);
                state.totals.passes += report.passes.len() as u64;
                state.totals.sent += u64::from(summary.taken);
                state.totals.refused += u64::from(summary.left_out());
                state.totals.resent += report.resent;
                state.totals.last_ms = Some(summary.took_ms);
                info!(
                    to = order.name,
                    entries = summary.taken,
                    left_out = summary.left_out(),
                    ms = summary.took_ms,
                    "has migrated"
                );
                Ended::Done(summary)
            }
            Err(failure) => {
                state.totals.failed += 1;
                let why = explain(&failure, &order.name);
                warn!(to = order.name, "not migrated: {why}");
                Ended::Failed(why)
            }
        });
    }

    async fn say(&self, message: &Message, to: Ipv4Addr) {
        let keys = self.wanted.borrow().keys.clone();
        sealing::say(&self.socket, &keys, to, message, &[]).await;
    }

    fn log_what_happened(&mut self) {
        let now = self.now();
        let Some(happened) = self.receiver.happened(now) else {
            return;
        };
        let name = |address: Address| {
            let wanted = self.wanted.borrow();
            let node = (wanted.nodes.iter()).find(|(at, _)| IpAddr::V4(*at) == address.ip());
            node.map_or_else(|| address.to_string(), |(_, name)| name.clone())
        };
        let left_out = |taken: Taken| taken.left_out.iter().sum::<u32>();
        match happened {
            Happened::Began(of) => info!(from = name(of), "takes TCB entries"),
            Happened::Ended(of, taken) => {
                info!(
                    from = name(of),
                    entries = taken.taken,
                    left_out = left_out(taken),
                    "has taken TCB entries"
                );
            }
            Happened::Aborted(of, taken) => {
                warn!(
                    from = name(of),
                    entries = taken.taken,
                    "a migration to this node has ended early"
                );
            }
            Happened::Lost(of, taken) => {
                warn!(
                    from = name(of),
                    entries = taken.taken,
                    "a migration to this node has ended early: its sender is silent"
                );
            }
        }
    }

    fn now(&self) -> Moment {
        Moment::after_epoch(self.epoch.elapsed())
    }
}

/// Waits for the result of the transfer; never returns if none is under way.
async fn transferred(outbound: &mut Option<Outbound>) -> Result<(), String> {
    let transferring = outbound
        .as_mut()
        .and_then(|outbound| outbound.transferring.as_mut());
    match transferring {
        Some(transferring) => transferring
            .await
            .unwrap_or_else(|_| Err("this node's daemon is ending".into())),
        None => std::future::pending().await,
    }
}

/// Explains a failure to the operator.
fn explain(failure: &Failure, to: &str) -> String {
    match failure {
        Failure::NoAnswer => format!(
            "{to} did not answer: is its daemon running, with this version, the same cluster key and the right time? `baton status` there counts what it refuses (lccp_bad_tag, lccp_bad_version, lccp_unknown, lccp_stale); nothing has moved"
        ),
        Failure::Silent => format!(
            "{to} has stopped answering; the cluster addresses are where they were; look at its daemon, and migrate once more"
        ),
        Failure::Refused(refusal) => format!("{to} takes no entries: {refusal}"),
        Failure::NotTransferred(why) => {
            format!("the entries went over, but the cluster addresses did not: {why}")
        }
        Failure::Aborted => {
            "the TCP table could not be read: this node's log says why; nothing has moved".into()
        }
        Failure::LastPassLost(_) => format!(
            "{to} has the cluster addresses, but did not take the last changes; the connections concerned are found by asking the data servers (cs_claim), and stay where they are"
        ),
    }
}
