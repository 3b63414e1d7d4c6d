//! Metrics of failover: who is in front, epoch, takeovers, and whether the other nodes can be understood.

use prometheus_client::registry::Registry;

use super::{counter, gauge};
use crate::status::Status;

/// Adds the metrics of failover, or nothing if this node is no candidate.
pub fn register(registry: &mut Registry, status: &Status) {
    let Some(failover) = &status.failover else {
        return;
    };
    gauge(
        registry,
        "failover_front",
        "1 if this connection server is in front, otherwise 0; always 0 with [failover] address = \"external\" or \"routed\"",
        (failover.front.as_ref() == Some(&status.node)).into(),
    );
    gauge(
        registry,
        "failover_epoch",
        "Epoch of this node's takeover if it is in front, otherwise the highest epoch that it knows of",
        failover.epoch,
    );
    counter(
        registry,
        "failover_takeovers",
        "Times that this node took the cluster addresses since its daemon started",
        failover.takeovers,
    );
    gauge(
        registry,
        "failover_unintelligible",
        "1 if messages of other nodes arrive but none could be accepted so far (check key, version and clock): this node does not take over",
        failover.unintelligible.is_some().into(),
    );
}

#[cfg(test)]
mod tests {
    use super::super::text;
    use crate::status::{Failover, example};

    #[test]
    fn failover_metrics() {
        let mut status = example();
        let metrics = text(&status).expect("writing to a String does not fail");
        assert!(!metrics.contains("baton_failover"), "{metrics}");
        status.failover = Some(Failover {
            state: "front".into(),
            candidates: vec!["cs1".into(), "cs2".into()],
            front: Some("cs1".into()),
            epoch: 7,
            takeovers: 2,
            unintelligible: None,
        });
        let metrics = text(&status).expect("writing to a String does not fail");
        for line in [
            "baton_failover_front 1",
            "baton_failover_epoch 7",
            "baton_failover_takeovers_total 2",
            "baton_failover_unintelligible 0",
        ] {
            assert!(
                metrics.lines().any(|found| found == line),
                "no {line}\n{metrics}"
            );
        }
    }
}
