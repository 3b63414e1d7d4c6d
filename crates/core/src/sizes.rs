//! Size classes: which paths of a service are large, from the data servers that hold them to the
//! connection servers that route by it.
//!
//! A data server says all of its list again and again, in several messages, so that a lost one is
//! repaired without an answer. A list has a *generation*; a connection server puts one together from its
//! parts and replaces the one before when it is whole. What several data servers say is added up: a path
//! is large if it is anywhere.

use std::collections::{BTreeMap, BTreeSet};

use baton_wire::{Address, Clock, Endpoint, PathHash, Sizes};

/// A data server's own list of one service.
#[derive(Clone, Debug, Default)]
pub struct Report {
    generation: u64,
    paths: BTreeSet<PathHash>,
}

impl Report {
    /// Makes these the list. True if it was another one.
    pub fn update(&mut self, now: Clock, paths: BTreeSet<PathHash>) -> bool {
        if self.generation != 0 && self.paths == paths {
            return false;
        }
        self.paths = paths;
        self.generation = now.as_nanos().max(self.generation + 1);
        true
    }

    /// All that is to be said of it; nothing before the first update.
    pub fn messages(&self, cluster: Endpoint) -> Vec<Sizes> {
        if self.generation == 0 {
            return Vec::new();
        }
        let paths: Vec<PathHash> = self.paths.iter().copied().collect();
        Sizes::parts(cluster, self.generation, &paths)
    }

    /// Paths that do not fit into as many messages as there may be.
    pub fn left_out(&self) -> usize {
        self.paths.len().saturating_sub(Sizes::PARTS * Sizes::PATHS)
    }
}

/// What a connection server has heard of all data servers.
#[derive(Clone, Debug, Default)]
pub struct Known {
    lists: BTreeMap<(Address, Endpoint), List>,
}

/// Of one data server and one service.
#[derive(Clone, Debug)]
struct List {
    /// Which list is being put together, and its parts so far.
    generation: u64,
    parts: BTreeMap<u16, Vec<PathHash>>,
    /// When the sender began to say it: what it said before that is no news.
    begun: Clock,
    /// The last one that was whole.
    paths: BTreeSet<PathHash>,
}

impl Known {
    /// Takes a part that a node has sent when its clock showed `sent`. True if a list is another now.
    pub fn handle(&mut self, from: Address, sent: Clock, part: &Sizes) -> bool {
        let new = || List {
            generation: part.generation,
            parts: BTreeMap::new(),
            begun: sent,
            paths: BTreeSet::new(),
        };
        let list = self.lists.entry((from, part.cluster)).or_insert_with(new);
        if part.generation != list.generation {
            if sent < list.begun {
                return false;
            }
            list.generation = part.generation;
            list.begun = sent;
            list.parts.clear();
        }
        list.parts.insert(part.part(), part.paths().to_vec());
        // One generation has always as many parts.
        if list.parts.len() < part.of().into() {
            return false;
        }
        let paths = list.parts.values().flatten().copied().collect();
        let changed = list.paths != paths;
        list.paths = paths;
        changed
    }

    /// Forgets data servers that are none of a service any more. True if that changed anything.
    pub fn keep(&mut self, serves: impl Fn(Address, Endpoint) -> bool) -> bool {
        let before = self.lists.len();
        self.lists.retain(|(from, at), _| serves(*from, *at));
        self.lists.len() != before
    }

    /// The large paths of a service.
    pub fn large(&self, at: Endpoint) -> BTreeSet<PathHash> {
        (self.lists.iter())
            .filter(|((_, of), _)| *of == at)
            .flat_map(|(_, list)| &list.paths)
            .copied()
            .collect()
    }
}
