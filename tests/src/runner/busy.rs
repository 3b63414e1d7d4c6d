//! Programs that take the processors away from scenarios, as others on a shared machine do.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Busy loops, each a thread that never sleeps. They end when this is dropped.
pub struct BusyLoops {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyLoops {
    /// Starts so many.
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
            // A loop has nothing to say, and cannot panic.
            let _ = thread.join();
        }
    }
}
