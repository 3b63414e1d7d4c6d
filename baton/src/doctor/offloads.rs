//! Offloads that change packets before a program sees them.

use baton_net::{Adapter, offload::offloads};

use super::finding::Finding;

/// A NIC that glues segments together (LRO) makes packets that can neither be forwarded nor taken apart
/// again.
pub async fn check(adapter: &Adapter) -> Finding {
    let on = offloads(&adapter.name)
        .await
        .map(|offloads| offloads.large_receive());
    judge(on.map_err(|error| error.to_string()), &adapter.name)
}

const NAME: &str = "lro";

fn judge(on: Result<bool, String>, interface: &str) -> Finding {
    let why = "Large receive offload glues segments together beyond repair, and drivers refuse XDP with it:";
    match on {
        Ok(false) => Finding::good(NAME, "off"),
        Ok(true) => Finding::bad(
            NAME,
            format!("on at {interface}"),
            format!("{why} ethtool -K {interface} lro off"),
        ),
        Err(error) => Finding::advice(
            NAME,
            error.lines().next().unwrap_or_default(),
            format!("{why} see that it is off: ethtool -k {interface}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Bad, Good};

    #[test]
    fn must_be_off() {
        assert_eq!(judge(Ok(false), "eth0").verdict(), Good);
        assert_eq!(judge(Ok(true), "eth0").verdict(), Bad);
        assert_eq!(judge(Err("no".into()), "eth0").verdict(), Advice);
    }
}
