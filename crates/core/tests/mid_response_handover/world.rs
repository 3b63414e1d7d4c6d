//! Connection server, old owner and other data servers, as far as a move is concerned: what their programs do with each
//! message, over a line that loses messages.

use std::collections::BTreeMap;

use baton_core::mid_response_handover::{Action, Handovers};
use baton_core::resume::Known;
use baton_wire::{Outcome, YieldAnswer};

use super::{FOUND, OWNER, at};

/// The place of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    At(u16),
    /// The connection has left its owner, and was lost on its way.
    Lost,
}

/// The owner that an entry names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    At(u16),
    /// One of these two has the connection.
    Between(u16, u16),
    /// Nobody has the connection, or this one has it: it is resumed.
    Resumed(u16),
}

pub struct World {
    pub moves: Handovers<u32, u16>,
    pub places: BTreeMap<u32, Place>,
    pub entries: BTreeMap<u32, Entry>,
    /// By connection and data server: the number of the order for a response that is ready there.
    ready: BTreeMap<(u32, u16), u64>,
    /// How often the owner was told to let go. It does so once it was told more often than `patience`.
    told: BTreeMap<u32, u32>,
    patience: u32,
    pub dead: Option<u16>,
    /// By number of the data server: whether it has the same response.
    same: Vec<bool>,
    lost: Vec<bool>,
    turn: usize,
    inbox: Vec<(u64, Letter)>,
    pub ended: BTreeMap<u32, &'static str>,
}

#[derive(Clone, Copy, Debug)]
enum Letter {
    Ready(u64, Outcome),
    Answer(u32, YieldAnswer),
}

impl World {
    pub fn new(connections: u32, same: Vec<bool>, lost: Vec<bool>, patience: u32) -> Self {
        let mut moves = Handovers::new(1);
        let servers: Vec<u16> = (1..same.len() as u16).collect();
        for key in 0..connections {
            moves.handle_busy(at(0), key, OWNER, servers.clone(), Known::default());
        }
        Self {
            moves,
            places: (0..connections)
                .map(|key| (key, Place::At(OWNER)))
                .collect(),
            entries: (0..connections)
                .map(|key| (key, Entry::At(OWNER)))
                .collect(),
            ready: BTreeMap::new(),
            told: BTreeMap::new(),
            patience,
            dead: None,
            same,
            lost,
            turn: 0,
            inbox: Vec::new(),
            ended: BTreeMap::new(),
        }
    }

    /// Asserts that each connection is where its entry says it is.
    pub fn check(&self) {
        for (key, entry) in &self.entries {
            let place = self.places[key];
            let found = match (*entry, place) {
                (_, Place::At(server)) if self.dead == Some(server) => true,
                (Entry::At(server), Place::At(at)) => server == at,
                (Entry::Between(from, to), Place::At(at)) => at == from || at == to,
                (Entry::Between(..) | Entry::Resumed(_), Place::Lost) => true,
                // The connection gets a new socket there, or keeps the one that it has there already.
                (Entry::Resumed(server), Place::At(at)) => server == at,
                (Entry::At(_), Place::Lost) => false,
            };
            assert!(found, "{key} is at {place:?}, and its entry says {entry:?}");
        }
    }

    pub fn die(&mut self, ms: u64, server: u16) {
        self.dead = Some(server);
        self.ready.retain(|(_, at), _| *at != server);
        self.moves.handle_death(at(ms), server);
    }

    /// Lets one moment pass: first what has arrived is handled, then what is to be done is done.
    pub fn step(&mut self, ms: u64) {
        let (due, later) = std::mem::take(&mut self.inbox)
            .into_iter()
            .partition(|(when, _)| *when <= ms);
        self.inbox = later;
        let due: Vec<(u64, Letter)> = due;
        for (_, letter) in due {
            match letter {
                Letter::Ready(number, outcome) => {
                    self.moves.handle_ready(at(ms), number, outcome, FOUND);
                }
                Letter::Answer(key, answer) => self.moves.handle_answer(at(ms), key, answer),
            }
            self.act(ms);
        }
        self.act(ms);
    }

    fn act(&mut self, ms: u64) {
        while let Some(action) = self.moves.poll(at(ms)) {
            self.perform(ms, action);
        }
        self.check();
    }

    fn perform(&mut self, ms: u64, action: Action<u32, u16>) {
        match action {
            Action::Ask {
                key,
                server,
                number,
                known,
            } => {
                assert_eq!(known.digest.is_some(), server != OWNER);
                if self.is_lost() || self.dead == Some(server) {
                    return;
                }
                let here = self.places[&key] == Place::At(server);
                let outcome = if server != OWNER && here && self.ready.contains_key(&(key, server))
                {
                    Outcome::Begun
                } else if self.same[usize::from(server)] {
                    self.ready.insert((key, server), number);
                    Outcome::Ready
                } else {
                    Outcome::Differs
                };
                self.send(ms, Letter::Ready(number, outcome));
            }
            Action::Cancel {
                key,
                server,
                order,
                number,
            } => {
                assert!(order < number);
                if !self.is_lost() && self.dead != Some(server) {
                    if self.places[&key] != Place::At(server) {
                        self.ready.remove(&(key, server));
                    }
                    self.send(ms, Letter::Ready(number, Outcome::Unreachable));
                }
            }
            Action::Begin { key, from, server } => {
                assert_eq!(self.entries[&key], Entry::At(from));
                // Nobody is told to let go for a data server that does not have the same response.
                assert!(self.same[usize::from(server)]);
                self.entries.insert(key, Entry::Between(from, server));
            }
            Action::Yield { key, from, server } => self.tell(ms, key, from, server),
            Action::Back { key, from, server } => {
                assert_eq!(self.entries[&key], Entry::Between(from, server));
                self.entries.insert(key, Entry::At(from));
            }
            Action::Begun { key, from, server } => {
                assert_eq!(self.entries[&key], Entry::Between(from, server));
                self.entries.insert(key, Entry::At(server));
                self.end(key, "begun");
            }
            Action::Orphan { key, server, .. } => {
                self.entries.insert(key, Entry::Resumed(server));
                self.end(key, "orphan");
            }
            Action::Stays { key, .. } => self.end(key, "stays"),
        }
    }

    fn tell(&mut self, ms: u64, key: u32, from: u16, server: Option<u16>) {
        if self.is_lost() || self.dead == Some(from) {
            return;
        }
        match (self.places[&key], server) {
            (Place::At(at), None) if at == from => {
                self.told.remove(&key);
                self.send(ms, Letter::Answer(key, YieldAnswer::Kept));
            }
            (Place::At(at), Some(server)) if at == from => {
                let told = self.told.entry(key).or_default();
                *told += 1;
                if *told > self.patience {
                    self.let_go(key, server);
                }
            }
            _ => self.send(ms, Letter::Answer(key, YieldAnswer::Gone)),
        }
    }

    /// Lets the connection go, by ADOPT to the agent at `server`.
    fn let_go(&mut self, key: u32, server: u16) {
        let comes =
            !self.is_lost() && self.dead != Some(server) && self.ready.contains_key(&(key, server));
        let place = if comes {
            Place::At(server)
        } else {
            Place::Lost
        };
        self.places.insert(key, place);
    }

    fn send(&mut self, ms: u64, letter: Letter) {
        if !self.is_lost() {
            self.turn += 1;
            // Messages take different times, so a late one is overtaken.
            let late = 1 + (self.turn % 7) as u64 * 3;
            self.inbox.push((ms + late, letter));
        }
    }

    fn end(&mut self, key: u32, how: &'static str) {
        assert_eq!(self.ended.insert(key, how), None, "{key} ends twice");
    }

    fn is_lost(&mut self) -> bool {
        self.turn += 1;
        self.lost[self.turn % self.lost.len()]
    }
}
