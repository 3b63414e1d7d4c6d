//! Locks that outlive a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Holds what `mutex` guards. Only for what is whole at every step, so that whoever panicked with the lock
/// has left something that can be used on: numbers, machines that are asked, values that are replaced.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
