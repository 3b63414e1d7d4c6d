//! What a pass has to send: at first all entries, then those that have changed since they were sent.

use std::collections::HashMap;

use baton_wire::{EntryKey, TcbEntry};

/// Remembers the entries as they were sent last.
#[derive(Debug, Default)]
pub struct Passes {
    sent: HashMap<EntryKey, TcbEntry>,
}

impl Passes {
    /// Selects what is to be sent of the table as it was just read.
    pub fn next(&mut self, read: Vec<TcbEntry>) -> Vec<TcbEntry> {
        if self.sent.is_empty() {
            self.sent = read.iter().map(|entry| (entry.key, *entry)).collect();
            // A walk through a table that changes may show an entry twice; the map above keeps the later one.
            if self.sent.len() == read.len() {
                return read;
            }
            return self.sent.values().copied().collect();
        }
        // Most entries have not changed, and requests may wait meanwhile, so unchanged ones are not copied.
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

/// Whether an entry has changed. A different age alone is no change: entries age at the receiver as well, and
/// whatever else a packet changes shows in the other fields.
fn is_other(before: &TcbEntry, now: &TcbEntry) -> bool {
    TcbEntry {
        age: now.age,
        ..*before
    } != *now
}
