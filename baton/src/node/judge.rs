//! The judge: decides the requests that the program cannot, each by its rules, and sends each on through
//! the program. It has a thread of its own, so that nothing the daemon does delays a request.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use anyhow::{Context, Result};
use baton_core::rules::{Request, Rules};
use baton_dataplane::{Dataplane, Punt, Punts, Resumed, sys};
use baton_net::{Link, PacketSocket};
use etherparse::{SlicedPacket, TransportSlice};
use tracing::{debug, warn};

/// Between two signs of life, of which the program misses some before it stops asking.
const SIGN: Duration = Duration::from_millis(10);

/// So many requests may take as long as that.
const LONG: usize = 32;

/// What the daemon holds of it.
#[derive(Default)]
pub struct Judge {
    rules: Arc<Mutex<Arc<Rules>>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Judge {
    /// Lets it judge from now on what comes to this interface.
    pub fn start(&mut self, dataplane: &Dataplane, link: &Link) -> Result<()> {
        let bench = Bench {
            punts: dataplane.punts()?,
            socket: PacketSocket::open(link)?,
            rules: self.rules.clone(),
        };
        let ends = self.ends.clone();
        // The program asks nobody before it has a sign.
        bench.punts.give_sign()?;
        let thread = std::thread::Builder::new()
            .name("judge".into())
            .spawn(move || bench.serve(&ends))
            .context("cannot start the thread that judges requests")?;
        self.thread = Some(thread);
        Ok(())
    }

    /// Judges by these rules from now on.
    pub fn follow(&self, rules: Rules) {
        *lock(&self.rules) = Arc::new(rules);
    }
}

/// The program is told, and what it has asked before is answered.
impl Drop for Judge {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            warn!("the thread that judged requests had failed");
        }
    }
}

/// What the thread works with.
struct Bench {
    punts: Punts,
    socket: PacketSocket,
    rules: Arc<Mutex<Arc<Rules>>>,
}

impl Bench {
    fn serve(self, ends: &AtomicBool) {
        if let Err(error) = sys::run_first() {
            debug!("requests are judged with the priority of the rest: {error}");
        }
        while !ends.load(Ordering::Relaxed) {
            logged(self.punts.give_sign());
            self.judge_for(SIGN);
        }
        logged(self.punts.withdraw());
        self.judge_for(Duration::ZERO);
    }

    fn judge_for(&self, time: Duration) {
        match self.punts.wait(time) {
            Ok(punts) => {
                for (judged, punt) in punts.enumerate() {
                    if judged % LONG == LONG - 1 {
                        logged(self.punts.give_sign());
                    }
                    if let Err(error) = self.judge(&punt) {
                        warn!("a request was not judged: {error:#}");
                    }
                }
            }
            Err(error) => {
                warn!("{error}");
                // Not to spin on an error that stays.
                std::thread::sleep(time);
            }
        }
    }

    fn judge(&self, punt: &Punt) -> Result<()> {
        let rules = lock(&self.rules).clone();
        let request = payload(&punt.frame).and_then(Request::read);
        let pool = request.and_then(|request| rules.pool(punt.service, &request));
        match self.punts.resume(punt, pool)? {
            Resumed::Leaves(frame) => self.socket.send(&frame)?,
            Resumed::Done | Resumed::Dropped => {}
        }
        Ok(())
    }
}

/// What the client says in a frame.
fn payload(frame: &[u8]) -> Option<&[u8]> {
    match SlicedPacket::from_ethernet(frame).ok()?.transport? {
        TransportSlice::Tcp(tcp) => Some(tcp.payload()),
        _ => None,
    }
}

/// Whoever panicked with it held a whole set of rules: it is put there in one step.
fn lock(rules: &Mutex<Arc<Rules>>) -> MutexGuard<'_, Arc<Rules>> {
    rules.lock().unwrap_or_else(PoisonError::into_inner)
}

fn logged(result: Result<(), baton_dataplane::Error>) {
    if let Err(error) = result {
        warn!("{error}");
    }
}
