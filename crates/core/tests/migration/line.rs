//! A sender and a receiver with their tables, and the line between them, in virtual time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use baton_core::Moment;
use baton_core::migration::{Failure, Receiver, Report, Sender, Step, merge};
use baton_wire::{Address, EntryKey, LeftOut, Taken, TcbEntry, Tcbs};

use crate::entries::{advance, entry};

/// What the line does to messages. Shares are parts of 1000.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    pub lost: u64,
    pub twice: u64,
    /// The longest time that a message takes, microseconds.
    pub delay: u64,
    /// From this message on everything is lost. `None`: the line is not cut.
    pub cut_at: Option<u64>,
}

pub struct World {
    pub now: Moment,
    pub sender: Sender,
    pub receiver: Receiver,
    /// The old connection server's table, which changes each time that it is read.
    pub there: HashMap<EntryKey, TcbEntry>,
    /// The new connection server's table.
    pub here: HashMap<EntryKey, TcbEntry>,
    pub changes: u32,
    pub weather: Weather,
    pub transfers: usize,
    pub holds: usize,
    pub applied: HashSet<u32>,
    under_way: BTreeMap<(Moment, u64), Message>,
    messages: u64,
    begun: u32,
    random: u64,
}

enum Message {
    Batch(Tcbs),
    Taken(Taken),
}

pub fn from() -> Address {
    Address::from_octets([1; 16])
}

impl World {
    pub fn new(entries: u32, weather: Weather, seed: u64) -> Self {
        let now = Moment::default();
        let there = (0..entries).map(entry).map(|entry| (entry.key, entry));
        Self {
            now,
            sender: Sender::new(now, 42),
            receiver: Receiver::default(),
            there: there.collect(),
            here: HashMap::new(),
            changes: 0,
            weather,
            transfers: 0,
            holds: 0,
            applied: HashSet::new(),
            under_way: BTreeMap::new(),
            messages: 0,
            begun: 0,
            random: seed | 1,
        }
    }

    /// Runs until the sender has ended.
    pub fn run(&mut self) -> Result<Report, Failure> {
        loop {
            while let Some(step) = self.sender.poll(self.now) {
                match step {
                    Step::Send(batch) => self.send(Message::Batch(batch)),
                    Step::Read => {
                        let keys = self.keys();
                        let read = keys.iter().map(|key| self.there[key]).collect();
                        // The table changes after it was read.
                        self.change();
                        self.sender.read(read);
                    }
                    Step::Hold => {
                        self.holds += 1;
                        // Changes from now on do not matter, so there are none.
                        self.changes = 0;
                        self.sender.held();
                    }
                    Step::Transfer => {
                        assert_eq!(self.holds, 1, "nothing waited");
                        assert_eq!(self.here_of_there(), self.there, "not all had come");
                        self.transfers += 1;
                        self.sender.transferred(Ok(()));
                    }
                    Step::End(result) => return result,
                }
            }
            let timeout = self.sender.next_timeout();
            let arrival = self.under_way.first_key_value().map(|((at, _), _)| *at);
            let next = [timeout, arrival].into_iter().flatten().min();
            self.now = self
                .now
                .max(next.expect("neither a message nor a timeout: it hangs"));
            assert!(
                self.now.since_epoch() < Duration::from_secs(600),
                "no end of it"
            );
            self.deliver();
        }
    }

    /// Returns the new server's entries for connections that the old server has.
    fn here_of_there(&self) -> HashMap<EntryKey, TcbEntry> {
        let known = self.here.iter();
        let known = known.filter(|(key, _)| self.there.contains_key(key));
        known.map(|(key, entry)| (*key, *entry)).collect()
    }

    /// Delivers what is still under way when the sender has ended.
    pub fn drain(&mut self) {
        while let Some(((at, _), _)) = self.under_way.first_key_value() {
            self.now = self.now.max(*at);
            self.deliver();
        }
    }

    pub fn deliver(&mut self) {
        while let Some(first) = self.under_way.first_entry()
            && first.key().0 <= self.now
        {
            match first.remove() {
                Message::Batch(batch) => self.receive(&batch),
                Message::Taken(taken) => self.sender.handle_taken(self.now, &taken),
            }
        }
        self.receiver.pause();
        self.answer();
    }

    pub fn receive(&mut self, batch: &Tcbs) {
        if self.receiver.handle(self.now, from(), batch, Ok(())) {
            assert!(self.applied.insert(batch.batch), "taken twice");
            let mut left_out = [0; LeftOut::ALL.len()];
            for entry in batch.entries() {
                match merge(self.here.get(&entry.key), entry) {
                    Some(entry) => {
                        self.here.insert(entry.key, entry);
                    }
                    None => left_out[LeftOut::Older.index()] += 1,
                }
            }
            let kept: u32 = left_out.iter().sum();
            self.receiver
                .took(batch.entries().len() as u32 - kept, left_out);
        }
        self.answer();
    }

    fn answer(&mut self) {
        if let Some((to, taken)) = self.receiver.poll() {
            assert_eq!(to, from());
            self.send(Message::Taken(taken));
        }
    }

    /// Returns the keys in an order that is the same in every run.
    fn keys(&self) -> Vec<EntryKey> {
        let mut keys: Vec<EntryKey> = self.there.keys().copied().collect();
        keys.sort_unstable_by_key(|key| key.client);
        keys
    }

    /// Lets some connections go on, some begin and some end.
    fn change(&mut self) {
        let keys = self.keys();
        for _ in 0..self.changes {
            let at = self.roll(keys.len().max(1) as u64) as usize;
            if let Some(entry) = keys.get(at).and_then(|key| self.there.get_mut(key)) {
                advance(entry);
            }
            // A connection that begins never has the key of an earlier one: its numbers would be behind those that the
            // receiver has already.
            self.begun += 1;
            let new = entry(1_000_000 + self.begun);
            self.there.insert(new.key, new);
            let at = self.roll(keys.len().max(1) as u64) as usize;
            if let Some(key) = keys.get(at).filter(|_| at.is_multiple_of(8)) {
                self.there.remove(key);
            }
        }
    }

    fn send(&mut self, message: Message) {
        self.messages += 1;
        let is_cut = |at: u64| self.messages >= at;
        if self.weather.cut_at.is_some_and(is_cut) || self.roll(1000) < self.weather.lost {
            return;
        }
        let again = match (&message, self.roll(1000) < self.weather.twice) {
            (Message::Batch(batch), true) => Some(Message::Batch(batch.clone())),
            (Message::Taken(taken), true) => Some(Message::Taken(*taken)),
            (_, false) => None,
        };
        for message in [Some(message), again].into_iter().flatten() {
            let delay = Duration::from_micros(10 + self.roll(self.weather.delay + 1));
            self.messages += 1;
            self.under_way
                .insert((self.now + delay, self.messages), message);
        }
    }

    /// Returns a random number below `end`, by xorshift64*.
    fn roll(&mut self, end: u64) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }
}
