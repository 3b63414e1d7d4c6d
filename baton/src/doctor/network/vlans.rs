//! Checks which interface the configuration must name where there are VLANs.

use baton_net::{Adapter, Netlink, offload::offloads};

use crate::doctor::finding::Finding;

/// Checks for VLANs above an interface. Programs take frames of a VLAN on the VLAN's own interface. On the interface
/// below, such frames are left to the kernel, as long as the program can see their tags.
pub async fn check(adapter: &Adapter, netlink: &Netlink) -> Finding {
    let vlans = match netlink.vlans_above(adapter.index).await {
        Ok(vlans) => vlans,
        Err(error) => {
            let found = error.to_string();
            let remedy = "If the cluster is in a VLAN, name the VLAN's interface: ip -d link";
            return Finding::advice(NAME, found.lines().next().unwrap_or_default(), remedy);
        }
    };
    let takes_off = offloads(&adapter.name)
        .await
        .is_ok_and(|offloads| offloads.takes_tags_off());
    judge(adapter, &vlans, takes_off)
}

const NAME: &str = "vlans";

fn judge(adapter: &Adapter, vlans: &[String], takes_off: bool) -> Finding {
    let name = &adapter.name;
    if adapter.kind.as_deref() == Some("vlan") {
        return Finding::good(NAME, format!("{name} is a VLAN's own interface"));
    }
    if vlans.is_empty() {
        return Finding::good(NAME, format!("none above {name}"));
    }
    let names = vlans.join(", ");
    let which = format!(
        "If the cluster is in one of them, name that as the node's interface in the configuration: on {name} \
         only frames without a tag are the cluster's."
    );
    if takes_off {
        return Finding::advice(
            NAME,
            format!("{names} above {name}, which takes tags off"),
            format!(
                "An XDP program does not see a tag that the card has taken off, and would take a frame of a VLAN \
                 for one without: ethtool -K {name} rxvlan off. {which}"
            ),
        );
    }
    Finding::advice(NAME, format!("{names} above {name}"), which)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{
        finding::Verdict::{Advice, Good},
        subject::tests::adapter,
    };

    #[test]
    fn which_interface() {
        let eth0 = adapter(0);
        assert_eq!(judge(&eth0, &[], true).verdict(), Good);
        let vlans = ["eth0.10".to_owned(), "eth0.20".to_owned()];
        let found = judge(&eth0, &vlans, false);
        assert_eq!(
            (found.verdict(), found.found()),
            (Advice, "eth0.10, eth0.20 above eth0")
        );
        let found = judge(&eth0, &vlans, true);
        assert!(
            found
                .remedy()
                .is_some_and(|remedy| remedy.contains("rxvlan off"))
        );
        let vlan = Adapter {
            kind: Some("vlan".into()),
            ..eth0
        };
        assert_eq!(judge(&vlan, &[], true).verdict(), Good);
    }
}
