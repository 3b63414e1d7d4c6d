//! What a pass has to send: all entries at first, then those that are others than when they were sent.

use std::collections::HashMap;

use baton_wire::{EntryKey, TcbEntry};

/// The entries as they were sent last.
#[derive(Debug, Default)]
pub struct Passes {
    sent: HashMap<EntryKey, TcbEntry>,
}

impl Passes {
    /// Of the table as it was read now, what is to be sent.
    pub fn next(&mut self, read: Vec<TcbEntry>) -> Vec<TcbEntry> {
        if self.sent.is_empty() {
            self.sent = read.iter().map(|entry| (entry.key, *entry)).collect();
            // A walk through a table that changes may show an entry twice: the later one is kept above.
            if self.sent.len() == read.len() {
                return read;
            }
            return self.sent.values().copied().collect();
        }
        // Most have not changed, and requests may wait meanwhile: those are only looked at.
        let sent = &mut self.sent;
        let is_news = |entry: &TcbEntry| match sent.get_mut(&entry.key) {
            Some(before) if !is_other(before, entry) => false,
            Some(before) => {
                *before = *entry;
                true
            }
            None => {
                sent.insert(entry.key, *entry);
                true
            }
        };
        let mut read = read;
        read.retain(is_news);
        read
    }
}

/// Age is no change: it passes at the receiver as well. What else a packet changes is seen by itself.
fn is_other(before: &TcbEntry, now: &TcbEntry) -> bool {
    TcbEntry {
        age: now.age,
        ..*before
    } != *now
}
