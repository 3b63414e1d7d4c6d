//! Metrics of failover: which connection server is in front.

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};

use crate::status::Status;

/// Adds the metrics of failover, or nothing if the node takes no part in failover.
pub fn register(registry: &mut Registry, status: &Status) {
    let Some(failover) = &status.failover else {
        return;
    };
    let front = Gauge::<i64>::default();
    let epoch = Gauge::<i64>::default();
    let takeovers = Counter::<u64>::default();
    let unintelligible = Gauge::<i64>::default();
    unintelligible.set(i64::from(failover.unintelligible.is_some()));
    front.set(i64::from(failover.front.as_ref() == Some(&status.node)));
    epoch.set(i64::try_from(failover.epoch).unwrap_or(i64::MAX));
    takeovers.inc_by(failover.takeovers);
    registry.register(
        "failover_front",
        "1 if this connection server is in front",
        front,
    );
    registry.register(
        "failover_epoch",
        "Epoch of this node's time in front, or the highest epoch that it has heard of",
        epoch,
    );
    registry.register(
        "failover_takeovers",
        "Times that this node took the cluster addresses since its daemon started",
        takeovers,
    );
    registry.register(
        "failover_unintelligible",
        "1 if messages of other nodes arrive but none can be accepted (key, version, time): this node does not take over",
        unintelligible,
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
