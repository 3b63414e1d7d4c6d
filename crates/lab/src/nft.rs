//! nftables inside a lab: rules that change or count what crosses the wires.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::{Doing, Result};
use crate::running::Running;
use crate::tool;

/// What a named counter of nftables has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The number of packets.
    pub packets: u64,
    /// The number of their bytes.
    pub bytes: u64,
}

impl Running {
    /// Gives a script to nft(8) on a host. nft does either all that it says or nothing.
    ///
    /// # Errors
    /// [`crate::Error::NoSuchHost`], [`crate::Error::NotUp`], [`crate::Error::Tool`] if nft refuses.
    pub fn nft(&self, host: &str, script: &str) -> Result<()> {
        let mut nft = self.exec(host)?;
        nft.args(["nft", "-f", "-"]);
        tool::finish(nft, Some(script)).map(drop)
    }

    /// What the named counters of nftables on a host have counted so far.
    ///
    /// # Errors
    /// [`crate::Error::NoSuchHost`], [`crate::Error::NotUp`], [`crate::Error::Tool`] if nft refuses.
    pub fn nft_counters(&self, host: &str) -> Result<BTreeMap<String, Counted>> {
        let mut nft = self.exec(host)?;
        nft.args(["nft", "-j", "list", "counters"]);
        let listed = serde_json::from_str(&tool::finish(nft, None)?);
        let listed: Value = listed
            .map_err(std::io::Error::other)
            .doing(|| format!("read what nft has counted on {host}"))?;
        Ok(counters(&listed))
    }
}

fn counters(listed: &Value) -> BTreeMap<String, Counted> {
    let entries = listed["nftables"].as_array().into_iter().flatten();
    let counters = entries.filter_map(|entry| {
        let counter = entry.get("counter")?;
        let counted = Counted {
            packets: counter["packets"].as_u64()?,
            bytes: counter["bytes"].as_u64()?,
        };
        Some((counter["name"].as_str()?.to_owned(), counted))
    });
    counters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nft_lists_is_understood() {
        let listed = serde_json::json!({ "nftables": [
            { "metainfo": {} },
            { "counter": { "family": "netdev", "table": "t", "name": "lost", "handle": 1, "packets": 6, "bytes": 60 } },
        ] });
        let lost = Counted {
            packets: 6,
            bytes: 60,
        };
        assert_eq!(
            counters(&listed),
            BTreeMap::from([("lost".to_owned(), lost)])
        );
        assert_eq!(counters(&Value::Null), BTreeMap::new());
    }
}
