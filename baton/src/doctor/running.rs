//! Checks what the node that runs here knows of the other nodes.

use std::{io, path::Path, time::Duration};

use super::finding::Finding;
use baton_node::{
    control::status,
    status::{Peer, Status},
};

/// Asks the node that runs here for its status, and judges what the status tells. The status is `None` if no node
/// answers.
pub fn check(file: &Path, window: Duration) -> (Vec<Finding>, Option<Status>) {
    match status(file) {
        Ok(status) => {
            let findings = vec![
                Finding::good(
                    NODE,
                    format!("{} runs, since {} s", status.node, status.uptime),
                ),
                judge_silence(&status.nodes),
                judge_skew(&status.nodes, window),
                judge_versions(&status.nodes),
            ];
            (findings, Some(*status))
        }
        Err(error) => (vec![judge_absence(&error)], None),
    }
}

const NODE: &str = "node";

/// Judges why no node gives its status. That none runs here is no fault, but a node that runs and does not answer is
/// one.
fn judge_absence(error: &anyhow::Error) -> Finding {
    let kind = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<io::Error>())
        .map(io::Error::kind);
    match kind {
        Some(io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => Finding::good(
            NODE,
            "none runs here, so it is not known whether the others are heard",
        ),
        _ => Finding::advice(
            NODE,
            format!("{error:#}"),
            "Only the running node knows whether the others are heard and how their clocks differ: run \
             this as root, and look at the node's log.",
        ),
    }
}

/// Finds nodes that are not heard. They get no new connections, and cannot hand over those that they have.
fn judge_silence(nodes: &[Peer]) -> Finding {
    const NAME: &str = "silent_nodes";
    let silent: Vec<String> = nodes
        .iter()
        .filter(|peer| peer.is_watched() && !peer.is_alive())
        .map(|peer| format!("{} ({}, {})", peer.name, peer.address, peer.state))
        .collect();
    if silent.is_empty() {
        return Finding::good(NAME, "none");
    }
    Finding::advice(
        NAME,
        silent.join(", "),
        "A node that is not heard gets no new connections. See that it runs (baton status there), that it \
         has the same key, and that no firewall between drops the protocol of the messages (protocol \
         under [cluster]).",
    )
}

/// Finds nodes whose clock differs. Messages of a node whose clock differs by more than the window are dropped; at
/// half of the window, drift is likely to get there.
fn judge_skew(nodes: &[Peer], window: Duration) -> Finding {
    const NAME: &str = "clock_skew";
    let skew = |peer: &Peer| Duration::from_millis(peer.clock_skew_ms.map_or(0, i64::unsigned_abs));
    let named = |limit: Duration| -> Vec<String> {
        nodes
            .iter()
            .filter(|peer| skew(peer) > limit)
            .map(|peer| {
                let refused = match peer.clock_refused {
                    true => ", its messages are refused",
                    false => "",
                };
                let behind = peer.clock_skew_ms.is_some_and(|ms| ms > 0);
                let way = if behind { "behind" } else { "ahead" };
                format!("{} {:?} {way}{refused}", peer.name, skew(peer))
            })
            .collect()
    };
    let remedy = format!(
        "Nodes drop each other's messages when their clocks differ by more than clock_window ({window:?}): \
         let an NTP client adjust the clocks of these nodes and of this one."
    );
    let (far, off) = (named(window), named(window / 2));
    if !far.is_empty() {
        Finding::bad(NAME, far.join(", "), remedy)
    } else if !off.is_empty() {
        Finding::advice(NAME, off.join(", "), remedy)
    } else {
        let largest = nodes.iter().map(skew).max().unwrap_or_default();
        Finding::good(
            NAME,
            format!("at most {largest:?} among the nodes that are heard"),
        )
    }
}

/// Finds nodes that speak another version of the protocol: such nodes do not understand each other at all.
fn judge_versions(nodes: &[Peer]) -> Finding {
    const NAME: &str = "lccp_versions";
    let other = nodes.iter().filter_map(|peer| {
        let version = peer.lccp_version?;
        Some(format!("{} speaks version {version} of LCCP", peer.name))
    });
    let other: Vec<String> = other.collect();
    if other.is_empty() {
        return Finding::good(NAME, "all nodes that are heard speak this node's version");
    }
    Finding::bad(
        NAME,
        other.join(", "),
        "Messages of another version are dropped, so these nodes and this one cannot hear each other: give \
         all nodes the same release of baton.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Bad, Good};

    fn peer(name: &str, state: &str, clock_skew_ms: Option<i64>) -> Peer {
        serde_json::from_value(serde_json::json!({
            "name": name, "address": "192.0.2.11", "roles": ["ds"], "state": state,
            "reachable": null, "adoptions": null, "flows": null, "cpu": null,
            "clock_skew_ms": clock_skew_ms,
        }))
        .expect("a peer as the control socket shows it")
    }

    #[test]
    fn silent_nodes_are_named() {
        let heard = [
            peer("cs1", "this node", None),
            peer("ds1", "alive", Some(1)),
            peer("cs2", "not watched here", None),
        ];
        assert_eq!(judge_silence(&heard).verdict(), Good);
        let silent = judge_silence(&[
            peer("ds2", "silent", None),
            peer("ds3", "never heard of", None),
        ]);
        assert_eq!(silent.verdict(), Advice);
        assert!(silent.found().contains("ds2") && silent.found().contains("ds3"));
    }

    #[test]
    fn skew_in_either_direction() {
        let window = Duration::from_secs(10);
        let judged = |skew| judge_skew(&[peer("ds1", "alive", skew)], window);
        assert_eq!(judged(None).verdict(), Good);
        assert_eq!(judged(Some(4_999)).verdict(), Good);
        assert_eq!(judged(Some(5_001)).verdict(), Advice);
        assert_eq!(judged(Some(-5_001)).verdict(), Advice);
        assert_eq!(judged(Some(-10_001)).verdict(), Bad);
        assert_eq!(judged(Some(-10_001)).found(), "ds1 10.001s ahead");
        assert_eq!(judged(Some(i64::MIN)).verdict(), Bad);
    }

    #[test]
    fn whose_messages_are_refused() {
        let mut peer = peer("ds2", "silent", Some(37_000));
        peer.clock_refused = true;
        let judged = judge_skew(&[peer], Duration::from_secs(10));
        assert_eq!(judged.verdict(), Bad);
        assert_eq!(judged.found(), "ds2 37s behind, its messages are refused");
    }

    #[test]
    fn who_speaks_another_version() {
        let mut nodes = [peer("cs1", "this node", None), peer("cs2", "silent", None)];
        assert_eq!(judge_versions(&nodes).verdict(), Good);
        nodes[1].lccp_version = Some(2);
        assert_eq!(judge_versions(&nodes).verdict(), Bad);
        assert_eq!(
            judge_versions(&nodes).found(),
            "cs2 speaks version 2 of LCCP"
        );
    }

    #[test]
    fn none_running_is_no_fault() {
        let error = |kind: io::ErrorKind| {
            anyhow::Error::from(io::Error::from(kind)).context("no node answers")
        };
        assert_eq!(
            judge_absence(&error(io::ErrorKind::NotFound)).verdict(),
            Good
        );
        assert_eq!(
            judge_absence(&error(io::ErrorKind::ConnectionRefused)).verdict(),
            Good
        );
        assert_eq!(
            judge_absence(&error(io::ErrorKind::PermissionDenied)).verdict(),
            Advice
        );
        assert_eq!(
            judge_absence(&anyhow::anyhow!("of another version")).verdict(),
            Advice
        );
    }
}
