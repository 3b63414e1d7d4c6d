//! Reads how much a host's interface received and sent, by the interface's own statistics.

use anyhow::{Context, Result};
use baton_lab::Running;
use serde_json::Value;

/// The statistics of an interface since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// The number of packets received.
    pub packets_in: u64,
    /// The number of bytes received.
    pub bytes_in: u64,
    /// The number of packets sent, including those that XDP programs sent.
    pub packets_out: u64,
    /// The number of bytes sent.
    pub bytes_out: u64,
}

/// Reads the statistics of a host's `eth0`.
pub fn read(lab: &Running, host: &str) -> Result<LinkStats> {
    let output = lab
        .exec(host)?
        .args(["ip", "-json", "-statistics", "link", "show", "eth0"])
        .output()
        .context("cannot run ip")?;
    let text = String::from_utf8_lossy(&output.stdout);
    parse(&text).with_context(|| format!("ip shows no statistics of eth0 on {host}: {text}"))
}

impl LinkStats {
    /// The difference to an earlier reading.
    pub fn since(self, before: LinkStats) -> LinkStats {
        LinkStats {
            packets_in: self.packets_in.saturating_sub(before.packets_in),
            bytes_in: self.bytes_in.saturating_sub(before.bytes_in),
            packets_out: self.packets_out.saturating_sub(before.packets_out),
            bytes_out: self.bytes_out.saturating_sub(before.bytes_out),
        }
    }
}

fn parse(text: &str) -> Option<LinkStats> {
    let listed: Value = serde_json::from_str(text).ok()?;
    let statistics = listed.get(0)?.get("stats64")?;
    let number = |direction: &str, what: &str| statistics.get(direction)?.get(what)?.as_u64();
    Some(LinkStats {
        packets_in: number("rx", "packets")?,
        bytes_in: number("rx", "bytes")?,
        packets_out: number("tx", "packets")?,
        bytes_out: number("tx", "bytes")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ip_shows_is_understood() {
        let text = r#"[{"ifname": "eth0", "stats64":
            {"rx": {"bytes": 20, "packets": 2, "errors": 0}, "tx": {"bytes": 10, "packets": 1}}}]"#;
        let link = parse(text);
        let expected = LinkStats {
            packets_in: 2,
            bytes_in: 20,
            packets_out: 1,
            bytes_out: 10,
        };
        assert_eq!(link, Some(expected));
        assert_eq!(expected.since(expected), LinkStats::default());
        assert_eq!(parse("[]"), None);
    }
}
