//! Metrics of failover: which connection server is in front.

use prometheus_client::{metrics::counter::Counter, registry::Registry};

use super::gauge;
use crate::status::Status;

/// Adds the metrics of failover, or nothing if the node takes no part in failover.
pub fn register(registry: &mut Registry, status: &Status) {
    let Some(failover) = &status.failover else {
        return;
    };
    gauge(
        registry,
        "failover_front",
        "1 if this connection server is in front",
        (failover.front.as_ref() == Some(&status.node)).into(),
    );
    gauge(
        registry,
        "failover_epoch",
        "Epoch of this node's time in front, or the highest epoch that it has heard of",
        failover.epoch,
    );
    let takeovers = Counter::<u64>::default();
    takeovers.inc_by(failover.takeovers);
    registry.register(
        "failover_takeovers",
        "Times that this node took the cluster addresses since its daemon started",
        takeovers,
    );
    gauge(
        registry,
        "failover_unintelligible",
        "1 if messages of other nodes arrive but none can be accepted (key, version, time): this node does not take over",
        failover.unintelligible.is_some().into(),
    );
}

#[cfg(test)]
mod tests {
    use super::super::text;
    use crate::status::{Failover, example};

    #[test]
    fn who_is_in_front() {
        let mut status = example();
        let told = text(&status).expect("it is written to memory");
        assert!(!told.contains("baton_failover"), "{told}");
        status.failover = Some(Failover {
            state: "front".into(),
            candidates: vec!["cs1".into(), "cs2".into()],
            front: Some("cs1".into()),
            epoch: 7,
            takeovers: 2,
            unintelligible: None,
        });
        let told = text(&status).expect("it is written to memory");
        for line in [
            "baton_failover_front 1",
            "baton_failover_epoch 7",
            "baton_failover_takeovers_total 2",
            "baton_failover_unintelligible 0",
        ] {
            assert!(told.lines().any(|found| found == line), "no {line}\n{told}");
        }
    }
}
