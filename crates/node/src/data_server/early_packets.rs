//! Packets that clients have sent too early are sent in again a moment later. So are requests that wait for a
//! dispatcher's answer; the sender asks the dispatcher. If a request waits only for an acknowledgement that its client
//! delays, the client is probed, and sends it.

use std::{
    sync::Weak,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use baton_abi::AnswerKey;
use baton_core::{
    Moment,
    early::{Early as Piece, Waiting},
};
use baton_dataplane::{Early, EarlyRing, sys};
use tracing::{debug, warn};

use crate::{connection_server::segments::Known, logging::complaints::Complaints};

/// The thread checks at least this often whether its sender still exists.
const LOOK: Duration = Duration::from_secs(1);

const MILLISECOND: Duration = Duration::from_millis(1);

/// Sends early packets in again, probes clients and asks dispatchers.
pub trait Sender: Send + Sync + 'static {
    /// Sends an early packet in again, as its client would send it.
    fn send_early(&self, early: &Early) -> Result<()>;

    /// Probes the client of this connection, so that it acknowledges what it has been sent.
    fn probe_client(&self, known: &Known) -> Result<()>;

    /// Asks a dispatcher about the request that this early packet begins.
    fn ask(&self, key: AnswerKey, early: &Early);
}

/// Starts the thread that has early packets sent in again. It ends when nobody holds the sender anymore.
pub fn start<S: Sender>(ring: EarlyRing, sender: Weak<S>) -> Result<()> {
    // This is no task of the runtime: packets may wait for less than a millisecond, and sending them would delay other
    // tasks.
    thread::Builder::new()
        .name("early".to_owned())
        .spawn(move || {
            if let Err(error) = sys::run_first() {
                debug!("the thread for early packets gets no priority over other threads: {error}");
            }
            if let Err(error) = run(&ring, &sender) {
                warn!("packets that come too early are dropped from now on: {error:#}");
            }
        })
        .context("cannot start the thread for early packets")?;
    Ok(())
}

struct Waits(Early);

impl Piece for Waits {
    fn seq(&self) -> u32 {
        self.0.seq
    }

    fn bytes(&self) -> usize {
        self.0.bytes.len()
    }
}

/// Takes the position of the connection from the early packet, in which the client states it.
fn known_from(early: &Early) -> Known {
    let (client, cluster) = early.flow.ends();
    Known {
        client,
        cluster,
        last_seq: early.seq,
        last_ack: early.ack,
    }
}

fn run<S: Sender>(ring: &EarlyRing, sender: &Weak<S>) -> Result<()> {
    let begin = Instant::now();
    let now = || Moment::after_epoch(begin.elapsed());
    let mut waiting = Waiting::default();
    let complaints = Complaints::about("a packet that came too early was not sent in again");
    let probe_complaints =
        Complaints::about("a client whose acknowledgement is awaited was not probed");
    loop {
        let due = waiting.next_timeout().map(|due| due.since(now()));
        let mut timeout = due.map_or(LOOK, |time| time.min(LOOK));
        // The ring can wait only for whole milliseconds, so the thread sleeps for shorter times.
        if timeout < MILLISECOND {
            thread::sleep(std::mem::take(&mut timeout));
        }
        let came = ring.wait(timeout)?;
        let Some(sender) = sender.upgrade() else {
            return Ok(());
        };
        for early in came {
            if let Some(key) = early.asks {
                sender.ask(key, &early);
            }
            if early.comes_again {
                let (came, is_unacknowledged) = (now(), early.unacknowledged);
                let known = known_from(&early);
                let of = (known.client, known.cluster);
                waiting.handle_early(came, of, Waits(early));
                if is_unacknowledged && waiting.probe(came, of, known.last_seq) {
                    probe_complaints.hear(sender.probe_client(&known));
                }
            }
        }
        for (_, all) in waiting.poll(now()) {
            for early in &all {
                complaints.hear(sender.send_early(&early.0));
            }
        }
    }
}
