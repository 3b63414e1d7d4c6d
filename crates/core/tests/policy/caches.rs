//! Servers with memories, in virtual time. Documents differ in popularity; some are in memory, and all are on disk.
//!
//! The load is a closed loop, as in the simulations of the LARD paper: there is a fixed number of clients, and each
//! asks for another document as soon as it has the one before. A server has one queue and does one thing at a time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::num::NonZeroU8;
use std::time::Duration;

use baton_core::Moment;
use baton_core::policy::{Chooser, Load, Policy, Server};
use baton_core::slots::Slot;
use baton_wire::Permille;

use crate::chance::Chance;

/// The parameters of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    pub servers: u8,
    pub clients: usize,
    pub documents: usize,
    /// Documents that one server's memory holds; the one longest unused makes room (LRU).
    pub memory: usize,
    /// Document k is asked for in proportion to 1/k to this power.
    pub zipf: f64,
    pub hit: Duration,
    pub miss: Duration,
    /// Seconds before anything is counted.
    pub warm_up: u64,
    pub seconds: u64,
}

/// The results of a simulation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    pub requests: u64,
    pub hits: u64,
    /// The longest queue divided by the average one, averaged over the seconds.
    pub imbalance: f64,
    /// The part of all choices that changes in a second, on average.
    pub moved: f64,
    seconds: u64,
}

impl Outcome {
    pub fn hit_rate(&self) -> f64 {
        self.hits as f64 / self.requests as f64
    }

    /// Requests per second.
    pub fn throughput(&self) -> f64 {
        self.requests as f64 / self.seconds as f64
    }
}

/// Simulates `scene` with this policy. The result is the same every time.
pub fn play(scene: &Scene, policy: Policy) -> Outcome {
    let mut stage = Stage::new(scene);
    let mut chooser = Chooser::new(policy);
    let mut before = Vec::new();
    let mut outcome = Outcome {
        seconds: scene.seconds,
        ..Outcome::default()
    };
    for second in 0..scene.warm_up + scene.seconds {
        let now = Moment::after_epoch(Duration::from_secs(second));
        let choices = chooser.choices(now, &servers(&stage.backends)).to_vec();
        let hashed = policy.number() == baton_abi::POLICY_PATH;
        let (requests, hits) = stage.run(scene, second + 1, &choices, hashed);
        if second >= scene.warm_up {
            let part = 1.0 / scene.seconds as f64;
            outcome.requests += requests;
            outcome.hits += hits;
            outcome.moved += changed(&before, &choices) * part;
            outcome.imbalance += stage.imbalance() * part;
        }
        before = choices;
    }
    outcome
}

struct Stage {
    chance: Chance,
    /// By document, from the most popular one: the part of requests that is for this document or one before it.
    popularity: Vec<f64>,
    backends: Vec<Backend>,
    /// When a client gets its document, in nanoseconds, and from which server. The earliest comes first.
    underway: BinaryHeap<Reverse<(u64, usize)>>,
    turn: usize,
}

#[derive(Default)]
struct Backend {
    name: String,
    memory: Memory,
    connections: u32,
    free_at: u64,
}

impl Stage {
    fn new(scene: &Scene) -> Self {
        let mut sum = 0.0;
        let mut popularity: Vec<f64> = (1..=scene.documents)
            .map(|rank| {
                sum += (rank as f64).powf(-scene.zipf);
                sum
            })
            .collect();
        popularity.iter_mut().for_each(|part| *part /= sum);
        let backend = |index| Backend {
            name: format!("ds{index}"),
            ..Backend::default()
        };
        Self {
            chance: Chance::new(1),
            popularity,
            backends: (0..scene.servers).map(backend).collect(),
            underway: BinaryHeap::new(),
            turn: 0,
        }
    }

    /// Runs up to `second`. Returns the number of requests, and how many of these were served from memory.
    fn run(&mut self, scene: &Scene, second: u64, choices: &[u16], hashed: bool) -> (u64, u64) {
        let until = second * 1_000_000_000;
        let (mut requests, mut hits) = (0, 0);
        loop {
            let now = match self.underway.peek() {
                _ if self.underway.len() < scene.clients => 0,
                Some(Reverse((at, _))) if *at < until => {
                    let (at, server) =
                        (*at, self.underway.pop().map(|Reverse((_, server))| server));
                    if let Some(server) = server {
                        self.backends[server].connections -= 1;
                    }
                    at
                }
                _ => return (requests, hits),
            };
            let drawn = self.chance.part();
            let document = self.popularity.partition_point(|part| *part < drawn);
            let place = if hashed {
                // Any hash of the document will do.
                Chance::new(document as u64).bits() as usize % choices.len()
            } else {
                self.turn += 1;
                self.turn % choices.len()
            };
            let server = usize::from(choices[place]);
            let backend = &mut self.backends[server];
            let hit = backend.memory.read(document, scene.memory);
            let takes = if hit { scene.hit } else { scene.miss };
            backend.free_at = backend.free_at.max(now) + takes.as_nanos() as u64;
            backend.connections += 1;
            self.underway.push(Reverse((backend.free_at, server)));
            requests += 1;
            hits += u64::from(hit);
        }
    }

    fn imbalance(&self) -> f64 {
        let connections = || {
            self.backends
                .iter()
                .map(|backend| f64::from(backend.connections))
        };
        let average = connections().sum::<f64>() / self.backends.len() as f64;
        connections().fold(0.0, f64::max) / average
    }
}

/// The memory of a server. The document that was not used for the longest time makes room.
#[derive(Default)]
struct Memory {
    clock: u64,
    used: std::collections::HashMap<usize, u64>,
    by_age: BTreeMap<u64, usize>,
}

impl Memory {
    /// Reads a document, which is in memory from now on. Returns whether it was there before.
    fn read(&mut self, document: usize, size: usize) -> bool {
        self.clock += 1;
        let before = self.used.insert(document, self.clock);
        if let Some(before) = before {
            self.by_age.remove(&before);
        }
        self.by_age.insert(self.clock, document);
        if self.by_age.len() > size
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.used.remove(&oldest);
        }
        before.is_some()
    }
}

fn servers(backends: &[Backend]) -> Vec<Server<'_>> {
    (0..)
        .zip(backends)
        .map(|(slot, backend)| Server {
            slot: Slot::from(slot),
            name: &backend.name,
            weight: NonZeroU8::MIN,
            load: Some(Load {
                connections: backend.connections,
                cpu: Permille::saturating(if backend.connections > 0 { 1000 } else { 0 }),
            }),
        })
        .collect()
}

/// Returns the part of choices that have changed.
fn changed(before: &[u16], now: &[u16]) -> f64 {
    let changed = before.iter().zip(now).filter(|(before, now)| before != now);
    changed.count() as f64 / now.len() as f64
}
