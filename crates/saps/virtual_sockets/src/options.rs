//! Options that programs set on connections, brought to their far ends.
//!
//! A connection is not known by its ends here. A program may set options of a socket whose connection is over, and what
//! it sets is on its way for a moment; a later connection may have the same ends by then. So a socket that called is known by
//! its cookie, and what came by a number that is given once.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use baton_dataplane::AppOptions;

/// No cookie is so large: the kernel counts them, from 1.
const NO_COOKIE: u64 = 1 << 63;

type Setter = Box<dyn Fn(AppOptions) + Send>;

/// What sets them.
pub(crate) struct Setters {
    all: Mutex<HashMap<u64, (u64, Setter)>>,
    /// Of what comes, and of each that is known.
    next: AtomicU64,
}

/// A connection's options are set for as long as this lives.
pub(crate) struct Known {
    setters: Arc<Setters>,
    connection: u64,
    /// A socket may call again, and has its cookie still.
    turn: u64,
}

impl Default for Setters {
    /// What an earlier agent's numbers are still told of is nobody's here.
    fn default() -> Self {
        let start = RandomState::new().hash_one(());
        Self {
            all: Mutex::default(),
            next: AtomicU64::new(start),
        }
    }
}

impl Setters {
    /// For a connection that comes: no other's, and no socket's cookie.
    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed) | NO_COOKIE
    }

    /// From now on; to be said before the program can have the connection.
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

    /// Sets them, or does nothing if the connection has ended.
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
