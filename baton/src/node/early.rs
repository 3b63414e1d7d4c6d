//! What clients of this data server have sent too early comes again, a moment later.

use std::{
    sync::{Arc, Weak},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use baton_core::{
    Moment,
    early::{Early as Piece, Waiting},
};
use baton_dataplane::{Early, EarlyRing, Reading};
use baton_net::client_frame::Stream;
use tracing::warn;

/// Bytes of the stream in a frame: one that goes on to another data server must fit with a message around it.
const PIECE: usize = 1200;

/// Whoever has it is looked for that often.
const LOOK: Duration = Duration::from_secs(1);

const MILLISECOND: Duration = Duration::from_millis(1);

/// Has it come again for as long as somebody has this.
pub struct Later {
    reading: Reading,
    mac: [u8; 6],
}

impl Later {
    /// Frames come in by the interface that `reading` is for, which has this MAC address.
    pub fn start(ring: EarlyRing, reading: Reading, mac: [u8; 6]) -> Result<Arc<Self>> {
        let later = Arc::new(Self { reading, mac });
        let held = Arc::downgrade(&later);
        // No task of the runtime's: a moment is a millisecond, and all the others would be late by what is sent.
        thread::Builder::new()
            .name("early".to_owned())
            .spawn(move || {
                if let Err(error) = run(&ring, &held) {
                    warn!("what comes too early is lost from now on: {error:#}");
                }
            })
            .context("cannot start the thread for what comes too early")?;
        Ok(later)
    }

    fn send(&self, early: &Early) -> Result<()> {
        let (client, cluster) = early.flow.ends();
        let stream = Stream {
            mac: self.mac,
            client,
            cluster,
            ack: early.ack,
            window: early.window,
            // What is to be echoed the program knows.
            stamps: early.tsval.map(|tsval| (tsval, 0)),
        };
        for frame in stream.frames(early.seq, &early.bytes, PIECE, early.ends) {
            self.reading.send_early(&frame)?;
        }
        Ok(())
    }
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

fn run(ring: &EarlyRing, held: &Weak<Later>) -> Result<()> {
    let begin = Instant::now();
    let now = || Moment::after_epoch(begin.elapsed());
    let mut waiting = Waiting::default();
    loop {
        let due = waiting.next_timeout().map(|due| due.since(now()));
        let mut timeout = due.map_or(LOOK, |time| time.min(LOOK));
        // The ring waits for whole milliseconds only.
        if timeout < MILLISECOND {
            thread::sleep(std::mem::take(&mut timeout));
        }
        for early in ring.wait(timeout)? {
            waiting.handle_early(now(), early.flow.ends(), Waits(early));
        }
        let Some(later) = held.upgrade() else {
            return Ok(());
        };
        for (_, all) in waiting.poll(now()) {
            all.iter().try_for_each(|early| later.send(&early.0))?;
        }
    }
}
