//! Warnings about clocks that differ too much.

use super::{Peer, Status};

impl Status {
    /// One line for each node whose messages are refused because of its clock, and one more if the clock of this node
    /// may be the wrong one.
    pub fn clock_warnings(&self) -> Vec<String> {
        let off: Vec<&Peer> = self
            .nodes
            .iter()
            .filter(|peer| peer.clock_refused)
            .collect();
        let right = self.nodes.iter().any(|peer| {
            peer.state != "this node" && peer.clock_skew_ms.is_some() && !peer.clock_refused
        });
        let mut lines: Vec<String> = off
            .iter()
            .map(|peer| {
                let skew = off_by(peer.clock_skew_ms.unwrap_or_default());
                format!(
                    "clock: {} is {skew}: its messages are refused; check NTP",
                    peer.name
                )
            })
            .collect();
        if off.len() > 1 && !right {
            lines.push(format!(
                "clock: no other node's clock agrees with that of this node, {}, which may be the wrong one",
                self.node
            ));
        }
        lines
    }
}

/// Words such as "37 s behind" for a clock that shows this many milliseconds less than ours. A negative number means
/// that it is ahead.
fn off_by(skew_ms: i64) -> String {
    let word = if skew_ms < 0 { "ahead" } else { "behind" };
    let seconds = skew_ms.unsigned_abs().div_ceil(1000);
    match seconds {
        0..7_200 => format!("{seconds} s {word}"),
        7_200..172_800 => format!("{} h {word}", seconds / 3600),
        _ => format!("{} days {word}", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::example;

    #[test]
    fn who_is_off_and_by_how_much() {
        let mut status = example();
        assert!(status.clock_warnings().is_empty());
        let ds1 = &mut status.nodes[1];
        (ds1.clock_refused, ds1.clock_skew_ms) = (true, Some(36_700));
        assert_eq!(
            status.clock_warnings(),
            ["clock: ds1 is 37 s behind: its messages are refused; check NTP"]
        );
        assert!(status.to_string().contains("\nclock: ds1 is 37 s behind"));
        status.nodes[1].clock_skew_ms = Some(-3_600_000);
        assert!(status.clock_warnings()[0].contains("ds1 is 3600 s ahead"));
    }

    #[test]
    fn when_all_others_are_off_it_may_be_this_one() {
        let mut status = example();
        let off = |name: &str, refused| Peer {
            name: name.into(),
            clock_refused: refused,
            clock_skew_ms: Some(20_000),
            ..status.nodes[1].clone()
        };
        status.nodes = vec![status.nodes[0].clone(), off("ds1", true), off("ds2", true)];
        assert_eq!(status.clock_warnings().len(), 3);
        assert!(status.clock_warnings()[2].contains("this node, cs1"));
        status.nodes[2].clock_refused = false;
        assert_eq!(status.clock_warnings().len(), 1);
    }

    #[test]
    fn all_sizes() {
        assert_eq!(off_by(10_001), "11 s behind");
        assert_eq!(off_by(-7_200_000), "2 h ahead");
        assert_eq!(off_by(172_800_000), "2 days behind");
        assert!(off_by(i64::MIN).ends_with("days ahead"));
    }
}
