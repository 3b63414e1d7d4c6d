//! What clients of this data server have sent too early comes again, a moment later; and so does a request of which a dispatcher
//! is asked, whom the sender is to ask. A client that delays an acknowledgement is made to send it, if a request waits only for that.

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

/// Who sends it is looked for that often.
const LOOK: Duration = Duration::from_secs(1);

const MILLISECOND: Duration = Duration::from_millis(1);

/// What sends it in again.
pub trait Sender: Send + Sync + 'static {
    /// As its client would.
    fn send_early(&self, early: &Early) -> Result<()>;

    /// Has the client of this connection acknowledge what it has been sent.
    fn probe_client(&self, known: &Known) -> Result<()>;

    /// Has a dispatcher asked about the request that it begins.
    fn ask(&self, key: AnswerKey, early: &Early);
}

/// Has it come again for as long as somebody has the sender.
pub fn start<S: Sender>(ring: EarlyRing, sender: Weak<S>) -> Result<()> {
    // No task of the runtime's: a moment is less than a millisecond, and all the others would be late by what is sent.
    thread::Builder::new()
        .name("early".to_owned())
        .spawn(move || {
            if let Err(error) = sys::run_first() {
                debug!("what comes too early waits with the priority of the rest: {error}");
            }
            if let Err(error) = run(&ring, &sender) {
                warn!("what comes too early is lost from now on: {error:#}");
            }
        })
        .context("cannot start the thread for what comes too early")?;
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

/// Where the connection is, as its client says with what waits.
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
    let complaints = Complaints::about("what came too early was not sent in again");
    let probe_complaints =
        Complaints::about("a client whose acknowledgement is awaited was not probed");
    loop {
        let due = waiting.next_timeout().map(|due| due.since(now()));
        let mut timeout = due.map_or(LOOK, |time| time.min(LOOK));
        // The ring waits for whole milliseconds only.
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
