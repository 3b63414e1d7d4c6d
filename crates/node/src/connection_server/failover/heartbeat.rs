//! The heartbeat of a candidate: a thread that tells the other candidates that this one lives and in which state it is,
//! hears them, and asks the state machine (`baton_core::failover`) what follows.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use baton_abi::LCCP_CANDIDATE;
use baton_core::{
    Moment,
    failover::{Action, Failover},
    listening::ListeningClock,
};
use baton_dataplane::{Refusals, RefusedNodes, sys};
use baton_net::{LccpSocket, Received};
use baton_wire::{KeyRing, Message, Reject};
use tokio::{
    sync::{Notify, mpsc},
    time::sleep,
};
use tracing::{debug, warn};

use crate::{locked::locked, peers::sealing};

/// How often the thread looks at the messages that the programs have refused.
const LOOK: Duration = Duration::from_millis(20);

/// The state that the daemon and the heartbeat share.
pub struct Shared {
    pub machine: Mutex<Failover>,
    /// Wakes the heartbeat after the daemon has told the machine something.
    pub told: Notify,
    pub trust: Mutex<Trust>,
    /// The clock by which the machine goes. It stands still while this process does not run.
    pub clock: Mutex<ListeningClock>,
    pub epoch: Instant,
    /// Tells the thread to end, so that this candidate sends nothing anymore.
    pub ended: AtomicBool,
}

#[derive(Clone)]
pub struct Trust {
    pub keys: KeyRing,
    pub clock_window: Duration,
}

pub struct Heartbeat {
    pub shared: Arc<Shared>,
    pub own: Ipv4Addr,
    pub protocol: u8,
    pub others: Vec<Ipv4Addr>,
    pub refused: RefusedNodes,
    pub decided: mpsc::UnboundedSender<Action>,
}

impl Heartbeat {
    /// Starts the thread, which runs until it is told to end or the process ends.
    pub fn start(mut self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the runtime of failover")?;
        let socket = {
            let _within = runtime.enter();
            LccpSocket::open(self.own, self.protocol)?
        };
        socket.hear_only(&[LCCP_CANDIDATE as u8])?;
        let thread = std::thread::Builder::new().name("failover".into());
        let beat = move || {
            if let Err(error) = sys::run_first() {
                debug!("the failover thread gets no priority over other threads: {error}");
            }
            runtime.block_on(self.run(&socket));
        };
        thread
            .spawn(beat)
            .context("cannot start the thread of failover")?;
        Ok(())
    }

    async fn run(&mut self, socket: &LccpSocket) {
        let mut buffer = vec![0; LccpSocket::MAX_PACKET];
        while !self.shared.ended.load(Ordering::Relaxed) {
            self.hear_of_refused();
            let wait = self.act(socket).await.min(LOOK);
            tokio::select! {
                received = socket.recv_from(&mut buffer) => match received {
                    Ok(received) => self.hear(&received),
                    Err(error) => debug!("{error}"),
                },
                () = self.shared.told.notified() => {}
                () = sleep(wait) => {}
            }
        }
    }

    /// Does what is due, and returns for how long nothing more will be due.
    async fn act(&self, socket: &LccpSocket) -> Duration {
        loop {
            let now = self.shared.now();
            let action = locked(&self.shared.machine).poll(now);
            match action {
                Some(Action::Say(said)) => self.say(socket, &Message::Candidate(said)).await,
                // Sending fails only if the daemon is ending.
                Some(action) => drop(self.decided.send(action)),
                None => return locked(&self.shared.machine).next_timeout().since(now),
            }
        }
    }

    /// Tells the machine of messages of other candidates that this node's programs have refused. Such messages do not
    /// reach the socket.
    fn hear_of_refused(&mut self) {
        for sender in &self.others {
            let refusals = match self.refused.look(*sender) {
                Ok(Some(refusals)) => refusals,
                Ok(None) => continue,
                Err(error) => {
                    debug!("{error}");
                    continue;
                }
            };
            let reject = match refusals {
                Refusals {
                    version: Some(_), ..
                } => Reject::BadVersion,
                Refusals { bad_tag: true, .. } => Reject::BadTag,
                _ => Reject::Stale,
            };
            let now = self.shared.now();
            if locked(&self.shared.machine).handle_unintelligible(now, (*sender).into()) {
                warn_of_unintelligible(*sender, reject);
            }
        }
    }

    fn hear(&self, heard: &Received<'_>) {
        let Received {
            sender, payload, ..
        } = *heard;
        let now = self.shared.now();
        // The machine is locked before the keys are read, so that no message is accepted by a key that was replaced
        // before the machine heard of it.
        let mut machine = locked(&self.shared.machine);
        let Trust { keys, clock_window } = locked(&self.shared.trust).clone();
        // The daemon hears the same messages and counts those that cannot be read.
        match sealing::open(self.own, &keys, clock_window, sender, payload, heard.came()) {
            Ok(received) => {
                if let Message::Candidate(said) = received.message {
                    machine.handle(now, sender.into(), received.clock, said);
                }
            }
            Err(reject) if self.others.contains(&sender) => {
                let is_news = machine.handle_unintelligible(now, sender.into());
                drop(machine);
                if is_news {
                    warn_of_unintelligible(sender, reject);
                }
            }
            Err(_) => {}
        }
    }

    async fn say(&self, socket: &LccpSocket, message: &Message) {
        let keys = locked(&self.shared.trust).keys.clone();
        for to in &self.others {
            sealing::say(socket, &keys, *to, message, &[]).await;
        }
    }
}

/// Logs that a node's messages are refused, for which reason, and what follows from that.
pub fn warn_of_unintelligible(sender: Ipv4Addr, reject: Reject) {
    warn!(
        "messages from {sender} arrive, but this node can accept none from any node: {reject}. Check that it has the cluster's key, the same version of baton and the right time; until then it does not take the cluster addresses"
    );
}

impl Shared {
    /// Returns the time by which the machine goes.
    pub fn now(&self) -> Moment {
        locked(&self.clock).look(Moment::after_epoch(self.epoch.elapsed()))
    }
}
