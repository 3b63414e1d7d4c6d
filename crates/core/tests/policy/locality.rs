//! The benefit of policies that go by path, with more documents than one server's memory holds.

use std::time::Duration;

use baton_core::policy::Policy;

use crate::caches::{Scene, play};

/// The example `locality` simulates a longer scene, and prints the results.
const SCENE: Scene = Scene {
    servers: 8,
    clients: 8 * 60,
    documents: 10_000,
    memory: 1_000,
    zipf: 0.9,
    hit: Duration::from_millis(2),
    miss: Duration::from_millis(20),
    warm_up: 60,
    seconds: 60,
};

#[test]
fn by_path_more_is_in_memory_and_lard_keeps_all_busy() {
    let [turns, path, lard] =
        [Policy::RoundRobin, Policy::Path, Policy::Lard].map(|policy| play(&SCENE, policy));
    for (policy, outcome) in [("path", path), ("lard", lard)] {
        assert!(
            outcome.hit_rate() > turns.hit_rate() + 0.15,
            "{policy}: {outcome:?}; in turn: {turns:?}"
        );
    }
    assert!(
        lard.throughput() > 1.5 * turns.throughput(),
        "{lard:?}; {turns:?}"
    );
    assert!(
        lard.throughput() > 1.1 * path.throughput(),
        "{lard:?}; {path:?}"
    );
    assert!(lard.imbalance < path.imbalance, "{lard:?}; {path:?}");
    assert!(lard.moved < 0.02, "{lard:?}");
}
