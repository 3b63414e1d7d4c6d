//! What a policy does to the servers' memories: hit rates, throughput and balance, side by side, in a
//! simulation of documents by popularity.
//!
//! `cargo run --release -p baton-core --example locality`

use std::time::Duration;

use baton_core::policy::Policy;

#[path = "../tests/policy/caches.rs"]
mod caches;
#[path = "../tests/policy/chance.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod chance;

use caches::{Scene, play};

const SCENE: Scene = Scene {
    servers: 8,
    clients: 8 * 60,
    documents: 40_000,
    memory: 4_000,
    zipf: 0.9,
    hit: Duration::from_micros(500),
    miss: Duration::from_millis(10),
    warm_up: 180,
    seconds: 300,
};

fn main() {
    println!(
        "{} servers, each with memory for {} of {} documents; popularity 1/rank^{}",
        SCENE.servers, SCENE.memory, SCENE.documents, SCENE.zipf
    );
    println!(
        "{} clients without a pause; {:?} from memory, {:?} from disk; {} s after {} s\n",
        SCENE.clients, SCENE.hit, SCENE.miss, SCENE.seconds, SCENE.warm_up
    );
    println!("policy         in memory   requests/s   longest queue/average   places moved/s");
    for (name, policy) in [
        ("round-robin", Policy::RoundRobin),
        ("least-loaded", Policy::LeastLoaded),
        ("path", Policy::Path),
        ("lard", Policy::Lard),
    ] {
        let outcome = play(&SCENE, policy);
        let moved = match policy {
            Policy::Lard => format!("{:.2} %", 100.0 * outcome.moved),
            _ => "-".into(),
        };
        println!(
            "{name:<14} {:>7.1} % {:>12.0} {:>23.1} {:>16}",
            100.0 * outcome.hit_rate(),
            outcome.throughput(),
            outcome.imbalance,
            moved,
        );
    }
}
