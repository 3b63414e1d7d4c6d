//! What clients of this data server have sent too early comes again, a moment later; and so does a request of which a dispatcher
//! is asked, whom the sender is to ask.

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

use super::complaints::Complaints;

/// Who sends it is looked for that often.
const LOOK: Duration = Duration::from_secs(1);

const MILLISECOND: Duration = Duration::from_millis(1);

/// What sends it in again.
pub trait Sender: Send + Sync + 'static {
    /// As its client would.
    fn send_early(&self, early: &Early) -> Result<()>;

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

fn run<S: Sender>(ring: &EarlyRing, sender: &Weak<S>) -> Result<()> {
    let begin = Instant::now();
    let now = || Moment::after_epoch(begin.elapsed());
    let mut waiting = Waiting::default();
    let complaints = Complaints::about("what came too early was not sent in again");
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
                waiting.handle_early(now(), early.flow.ends(), Waits(early));
            }
        }
        for (_, all) in waiting.poll(now()) {
            for early in &all {
                complaints.hear(sender.send_early(&early.0));
            }
        }
    }
}
