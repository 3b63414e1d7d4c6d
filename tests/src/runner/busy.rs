//! Programs that take the processors away from scenarios, as others on a shared machine do.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Busy loops, each a thread that never sleeps. The threads end when this is dropped.
pub struct BusyLoops {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyLoops {
    /// Starts `count` busy loops.
    pub fn start(count: usize) -> BusyLoops {
        let ended = Arc::new(AtomicBool::new(false));
        let threads = (0..count).map(|_| {
            let ended = Arc::clone(&ended);
            thread::spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
            })
        });
        BusyLoops {
            threads: threads.collect(),
            ended,
        }
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A busy loop returns nothing and cannot panic.
            let _ = thread.join();
        }
    }
}
