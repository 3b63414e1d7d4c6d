//! Random loss: each packet from and to a host is dropped with the same probability.
//!
//! Rules of nftables do this at the host's port on the bridge, at ingress and at egress (the latter needs
//! `CONFIG_NETFILTER_EGRESS`, Linux 5.16). So packets that XDP sends pass the rules too.

use std::fmt::Write as _;

use crate::error::Result;
use crate::file::Loss;
use crate::netns::Namespace;
use crate::tool;

const TABLE: &str = "netdev baton_loss";

/// Sets the loss of one host's link, and replaces the loss that was set before.
pub(crate) fn set(bridge: &Namespace, port: &str, loss: Loss) -> Result<()> {
    let mut nft = tool::tool("nsenter", [""; 0])?;
    nft.arg(format!("--net={}", bridge.path().display()))
        .args(["--", "nft", "-f", "-"]);
    tool::finish(nft, Some(&script(port, loss))).map(drop)
}

/// The nftables script. It makes each chain if it is missing, so that it can be flushed. Then it adds a
/// rule, or deletes the chain so that a link without loss pays nothing.
fn script(port: &str, loss: Loss) -> String {
    let mut script = format!("add table {TABLE}\n");
    for (chain, hook) in [
        (format!("from-{port}"), "ingress"),
        (format!("to-{port}"), "egress"),
    ] {
        let rule = match loss.per_million() {
            0 => format!("delete chain {TABLE} {chain}"),
            1_000_000 => format!("add rule {TABLE} {chain} counter drop"),
            part => {
                format!("add rule {TABLE} {chain} numgen random mod 1000000 < {part} counter drop")
            }
        };
        // A String never fails to grow.
        let _ = write!(
            script,
            "add chain {TABLE} {chain} \
             {{ type filter hook {hook} device \"{port}\" priority 0; policy accept; }}\n\
             flush chain {TABLE} {chain}\n{rule}\n"
        );
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_lose() -> Result<(), String> {
        let script = script("ds1", Loss::new(0.05)?);
        assert!(script.contains("hook ingress device \"ds1\""), "{script}");
        assert!(script.contains("hook egress device \"ds1\""), "{script}");
        assert_eq!(
            script.matches("mod 1000000 < 50000 counter drop").count(),
            2,
            "{script}"
        );
        Ok(())
    }

    #[test]
    fn none_and_all_need_no_dice() -> Result<(), String> {
        assert!(script("a", Loss::new(0.0)?).contains("delete chain"));
        assert!(!script("a", Loss::new(1.0)?).contains("numgen"));
        Ok(())
    }
}
