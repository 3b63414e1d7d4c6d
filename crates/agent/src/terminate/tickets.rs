//! The keys of session tickets in this process.

use std::time::{SystemTime, UNIX_EPOCH};

use baton_tls::{TicketKeyRing, TicketKeys};
use tokio::sync::watch;

/// The keys that this process knows: its own, and those of other data servers, of which the daemon tells.
pub(super) struct Tickets {
    /// The daemon is told what changes here.
    ring: watch::Sender<TicketKeyRing>,
    keys: TicketKeys,
}

impl Tickets {
    /// Makes the keys of a process that knows none yet. They are also what the daemon is to be told.
    pub fn new() -> (Self, watch::Receiver<TicketKeyRing>) {
        let (ring, told) = watch::channel(TicketKeyRing::default());
        let keys = TicketKeys::default();
        (Self { ring, keys }, told)
    }

    /// What acceptors use, whatever changes.
    pub fn keys(&self) -> TicketKeys {
        self.keys.clone()
    }

    /// Takes what the daemon knows: own keys of a process before, and those of other data servers.
    pub fn hear(&self, ring: TicketKeyRing) {
        self.change(|known, now| known.merge(ring, now));
    }

    /// Makes a key if it is time to, and forgets the old ones.
    pub fn renew(&self) {
        self.change(|known, now| known.forget(now) | known.renew(now));
    }

    /// Forgets the old ones.
    pub fn forget(&self) {
        self.change(TicketKeyRing::forget);
    }

    fn change(&self, change: impl FnOnce(&mut TicketKeyRing, u64) -> bool) {
        let now = now();
        self.ring.send_if_modified(|ring| change(ring, now));
        self.keys.follow(&self.ring.borrow(), now);
    }
}

/// The time by which ticket keys are made and forgotten: seconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    // A clock before 1970 stands for its beginning.
    since.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(told: &watch::Receiver<TicketKeyRing>) -> Option<Vec<u8>> {
        told.borrow().own().map(|own| own.write().to_vec())
    }

    /// All that was told, like a message.
    fn copy(told: &mut watch::Receiver<TicketKeyRing>) -> TicketKeyRing {
        told.borrow_and_update().clone()
    }

    #[test]
    fn a_process_goes_on_with_the_key_of_the_one_before() {
        let (before, mut told_before) = Tickets::new();
        assert!(own(&told_before).is_none());
        before.renew();
        assert!(told_before.has_changed().unwrap() && own(&told_before).is_some());
        let (next, told_next) = Tickets::new();
        next.hear(copy(&mut told_before));
        next.renew();
        assert_eq!(own(&told_next), own(&told_before));
        // One that has not heard of it makes another, which the one before knows in the end.
        let (other, mut told_other) = Tickets::new();
        other.renew();
        let key = own(&told_other).unwrap();
        assert_ne!(own(&told_before).unwrap(), key);
        before.hear(copy(&mut told_other));
        assert!(told_before.has_changed().unwrap());
        assert_eq!(own(&told_before).unwrap().len(), 2 * key.len());
        // What is known already is no news.
        let all = copy(&mut told_before);
        before.hear(all);
        before.forget();
        assert!(!told_before.has_changed().unwrap());
    }
}
