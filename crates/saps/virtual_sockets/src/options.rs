//! The options that programs set on connections, and how they reach the far ends.
//!
//! A connection is not identified by its two ends here. A program may set options of a socket whose connection is
//! over, and the event that reports them takes a moment to arrive; by then a later connection may have the same ends.
//! So a socket that called is identified by its cookie, and a connection that a client made by a number that is given
//! only once.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use baton_dataplane::AppOptions;

/// The first number that is no cookie. The kernel counts cookies from 1 and never gets this far.
const NO_COOKIE: u64 = 1 << 63;

type Setter = Box<dyn Fn(AppOptions) + Send>;

/// The functions that set the options of connections.
pub(crate) struct Setters {
    all: Mutex<HashMap<u64, (u64, Setter)>>,
    /// The next number, for clients' connections and for `Known::turn`.
    next: AtomicU64,
}

/// Keeps a connection's setter registered for as long as this lives.
pub(crate) struct Known {
    setters: Arc<Setters>,
    connection: u64,
    /// Distinguishes the calls of one socket, which has the same cookie in each.
    turn: u64,
}

impl Default for Setters {
    /// Begins to count at random, so that options that are reported for an earlier agent's numbers match no connection
    /// of this agent.
    fn default() -> Self {
        let start = RandomState::new().hash_one(());
        Self {
            all: Mutex::default(),
            next: AtomicU64::new(start),
        }
    }
}

impl Setters {
    /// Returns a number for a connection that a client made: no other connection has it, and no socket has it as its
    /// cookie.
    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed) | NO_COOKIE
    }

    /// Registers a connection's setter. This must be done before the program can have the connection.
    pub fn know(
        self: &Arc<Self>,
        connection: u64,
        setter: impl Fn(AppOptions) + Send + 'static,
    ) -> Known {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(connection, (turn, Box::new(setter)));
        Known {
            setters: Arc::clone(self),
            connection,
            turn,
        }
    }

    /// Sets options of a connection, or does nothing if the connection has ended.
    pub fn set(&self, connection: u64, options: AppOptions) {
        if let Some((_, setter)) = self.lock().get(&connection) {
            setter(options);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, (u64, Setter)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        let mut all = self.setters.lock();
        if (all.get(&self.connection)).is_some_and(|(turn, _)| *turn == self.turn) {
            all.remove(&self.connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(count: &Arc<AtomicU64>) -> impl Fn(AppOptions) + Send + 'static {
        let count = Arc::clone(count);
        move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_socket_that_calls_again_has_its_new_setter_and_keeps_it() {
        let setters: Arc<Setters> = Arc::default();
        let [first, second]: [Arc<AtomicU64>; 2] = Default::default();
        let before = setters.know(7, counting(&first));
        let after = setters.know(7, counting(&second));
        drop(before);
        setters.set(7, AppOptions::default());
        assert_eq!(first.load(Ordering::Relaxed), 0);
        assert_eq!(second.load(Ordering::Relaxed), 1);
        drop(after);
        setters.set(7, AppOptions::default());
        assert_eq!(second.load(Ordering::Relaxed), 1);
        assert!(setters.lock().is_empty());
    }

    #[test]
    fn no_two_that_come_have_one_number() {
        let setters = Setters::default();
        let (one, two) = (setters.number(), setters.number());
        assert_ne!(one, two);
        assert!(one >= NO_COOKIE && two >= NO_COOKIE);
    }
}
