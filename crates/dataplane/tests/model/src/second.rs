//! A second processor, which runs the program at the same time as the first.

use std::{
    hint::spin_loop,
    os::fd::{AsFd as _, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use baton_dataplane::sys::{self, Outcome};
use nix::{
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};

/// A thread that waits for frames. It ends with this.
pub struct Second {
    frames: Sender<(Vec<u8>, u32)>,
    outcomes: Receiver<Outcome>,
    is_ready: Arc<AtomicBool>,
    goes: Arc<AtomicBool>,
}

impl Second {
    /// The calling thread is to be the first.
    pub fn start(program: OwnedFd) -> Self {
        let (frames, given) = channel::<(Vec<u8>, u32)>();
        let (made, outcomes) = channel();
        let is_ready = Arc::new(AtomicBool::new(false));
        let goes = Arc::new(AtomicBool::new(false));
        let (ready, go) = (Arc::clone(&is_ready), Arc::clone(&goes));
        stay_on(0);
        thread::spawn(move || {
            stay_on(1);
            while let Ok((frame, later)) = given.recv() {
                ready.store(true, Ordering::Release);
                while !go.swap(false, Ordering::Acquire) {
                    spin_loop();
                }
                for _ in 0..later {
                    spin_loop();
                }
                let outcome = sys::run_on_arrival(program.as_fd(), &[], &frame, 0).unwrap();
                if made.send(outcome).is_err() {
                    return;
                }
            }
        });
        Self {
            frames,
            outcomes,
            is_ready,
            goes,
        }
    }

    /// Runs the program on this frame while `meanwhile` runs here, so many turns of an empty loop later.
    pub fn run<T>(
        &self,
        frame: Vec<u8>,
        later: u32,
        meanwhile: impl FnOnce() -> T,
    ) -> (T, Outcome) {
        self.frames.send((frame, later)).unwrap();
        while !self.is_ready.swap(false, Ordering::Acquire) {
            spin_loop();
        }
        self.goes.store(true, Ordering::Release);
        let here = meanwhile();
        (here, self.outcomes.recv().unwrap())
    }
}

/// Where there is only one, the two take turns.
fn stay_on(processor: usize) {
    let mut set = CpuSet::new();
    let _ = set
        .set(processor)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
}
