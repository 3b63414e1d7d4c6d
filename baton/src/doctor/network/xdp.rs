//! Checks where the connection server's program can run on an interface, and whether that place is free.

use std::path::Path;

use baton_config::Xdp;
use baton_dataplane::kernel::{XdpHolder, XdpState};
use baton_net::Adapter;

use crate::doctor::{finding::Finding, kernel::proc};

/// Checks whether the program runs in native or generic mode, whether another program is in its place, and what is
/// special about veth. `wish` is the XDP mode that the configuration sets for this node.
pub fn check(adapter: &Adapter, wish: Option<Xdp>) -> Vec<Finding> {
    match XdpState::of(adapter.index) {
        Ok(xdp) => {
            let mut findings = vec![
                judge_mode(&driver(adapter), &xdp, wish),
                judge_place(&adapter.name, &xdp),
            ];
            if adapter.kind.as_deref() == Some("veth") {
                findings.push(judge_veth(&adapter.name, &xdp));
            }
            findings
        }
        Err(error) => vec![Finding::advice(
            MODE,
            format!("the kernel does not tell: {error}"),
            "The connection server's program is attached by XDP: whether this interface supports it will show \
             when the node starts.",
        )],
    }
}

/// Whether the driver runs XDP programs. If the kernel does not tell, this is true.
pub fn is_native(adapter: &Adapter) -> bool {
    XdpState::of(adapter.index).map_or(true, |xdp| xdp.features & BASIC != 0)
}

const MODE: &str = "xdp";
/// The feature bit `NETDEV_XDP_ACT_BASIC`: the driver can pass, drop and send back packets.
const BASIC: u64 = 1;
/// The feature bit `NETDEV_XDP_ACT_NDO_XMIT`: the driver takes frames that a program sends.
const XMIT: u64 = 4;
/// The prefix of the names of this project's programs.
const OURS: &str = "baton_";

/// Judges the mode of the program. In the driver the program runs before the kernel has processed a packet. In generic
/// mode it runs after that, which is correct but slower, so a node does it only if its configuration allows it. `wish`
/// is the mode that the configuration sets.
fn judge_mode(driver: &str, xdp: &XdpState, wish: Option<Xdp>) -> Finding {
    const SLOW: &str = "The connection server's program then runs after the kernel has made its own form of each \
                        packet: correct, but several times slower.";
    let native = xdp.features & BASIC != 0;
    let generic_only = match driver {
        "bond" => {
            "generic only: this bond has no native XDP in its mode, or with its cards".to_owned()
        }
        _ => format!("generic only: the driver {driver} knows no native XDP"),
    };
    let elsewhere = match driver {
        "bond" => {
            "A bond has native XDP in the modes active-backup, balance-rr, balance-xor and 802.3ad (without \
             xmit_hash_policy vlan+srcmac), if the drivers of all its cards have it."
        }
        _ => {
            "For native, name a NIC whose driver has it, or the NIC itself instead of a bridge or tunnel above it."
        }
    };
    match wish {
        Some(Xdp::Generic) if native => Finding::advice(
            MODE,
            format!("generic, as the configuration says, and the driver {driver} knows native"),
            format!("{SLOW} Write xdp = \"native\" under this [[node]]."),
        ),
        _ if native => Finding::good(MODE, format!("native: the driver {driver} knows it")),
        Some(Xdp::Native) => Finding::bad(
            MODE,
            generic_only,
            format!(
                "So the node does not start. {SLOW} To have that, write xdp = \"auto\" under this [[node]]. {elsewhere}"
            ),
        ),
        _ => Finding::advice(
            MODE,
            generic_only,
            format!("{SLOW} A node needs xdp = \"auto\" for it in the configuration. {elsewhere}"),
        ),
    }
}

/// Judges whether the place is free. An interface takes one XDP program in each mode, so another program keeps ours
/// out.
fn judge_place(interface: &str, xdp: &XdpState) -> Finding {
    const NAME: &str = "xdp_place";
    let remedy = format!(
        "An interface takes one XDP program, and the connection server needs that place: detach the other \
         (ip link set dev {interface} xdp off, or stop what attached it)."
    );
    match &xdp.holder {
        None => Finding::good(NAME, "free"),
        Some(XdpHolder {
            id,
            name: Some(name),
        }) if name.starts_with(OURS) => Finding::good(NAME, format!("ours: {name} ({id}) runs")),
        Some(holder) if holder.name.is_some() => {
            Finding::bad(NAME, format!("taken by {holder}"), remedy)
        }
        Some(holder) => Finding::advice(
            NAME,
            format!("taken by {holder}"),
            format!("If it is not baton's own: {remedy}"),
        ),
    }
}

/// Judges a veth. It can send from XDP only if its peer runs an XDP program, too: the kernel shows by this feature
/// that the peer may take such frames (`veth_set_xdp_features` in drivers/net/veth.c). A packet that arrives over a
/// veth has no TCP checksum yet, unless its sender computes it.
fn judge_veth(interface: &str, xdp: &XdpState) -> Finding {
    const NAME: &str = "xdp_veth";
    let why = "Only through a peer that runs an XDP program (a bare XDP_PASS will do) can a veth send from XDP, \
               and packets that were sent here with checksum offload on have no checksum.";
    let remedy = format!(
        "{why} Attach one to the peer of {interface}, and on every host that sends here over a veth: \
         ethtool -K NAME tx off. Real NICs need neither."
    );
    if xdp.features & XMIT == 0 {
        return Finding::bad(
            NAME,
            "the peer takes no frames from XDP: every answer would be lost",
            remedy,
        );
    }
    Finding::advice(
        NAME,
        "the peer may take frames from XDP; its program and its senders are not seen from here",
        remedy,
    )
}

/// Checks whether a packet that came in by another interface of the node can leave by this one. `wish` is the XDP mode
/// that the configuration sets for this node.
pub fn check_redirect(adapter: &Adapter, wish: Option<Xdp>) -> Finding {
    match XdpState::of(adapter.index) {
        Ok(xdp) => judge_redirect(&driver(adapter), &xdp, wish),
        Err(error) => Finding::advice(
            REDIRECT,
            format!("the kernel does not tell: {error}"),
            "Whether packets of another interface can leave by this one will show when the node starts.",
        ),
    }
}

const REDIRECT: &str = "xdp_redirect";

/// Judges whether the interface can send such packets. A driver sends what a program at another interface redirects
/// only if it can (`ndo_xdp_xmit`). Many drivers can only while they have a program themselves, as every interface of
/// a node has. Generic mode sends through the kernel, and so by any interface.
fn judge_redirect(driver: &str, xdp: &XdpState, wish: Option<Xdp>) -> Finding {
    if wish == Some(Xdp::Generic) {
        return Finding::good(REDIRECT, "not needed: generic mode sends by any interface");
    }
    if xdp.features & XMIT != 0 {
        return Finding::good(REDIRECT, "takes packets that came by another interface");
    }
    let slow = match wish {
        Some(Xdp::Native) => {
            "So the node does not start. With xdp = \"auto\" under this [[node]] it runs its programs in generic mode \
             at all its interfaces: correct, but several times slower."
        }
        _ => {
            "With xdp = \"auto\" the node runs its programs in generic mode at all its interfaces: correct, but several \
             times slower. Without, it does not start."
        }
    };
    let knows_native = xdp.features & BASIC != 0;
    if !knows_native {
        return Finding::advice(
            REDIRECT,
            format!("the driver {driver} knows no XDP"),
            format!(
                "{slow} For speed use NICs whose drivers have native XDP for all interfaces of a node."
            ),
        );
    }
    let holder = xdp.holder.as_ref().and_then(|holder| holder.name.as_ref());
    if holder.is_some_and(|name| name.starts_with(OURS)) {
        return Finding::advice(
            REDIRECT,
            format!("the driver {driver} takes no packets that came by another interface"),
            format!(
                "{slow} Some drivers can with more queues (ethtool -L) or a newer kernel; a veth can if its peer has \
                 an XDP program. Then start the node again."
            ),
        );
    }
    Finding::advice(
        REDIRECT,
        format!(
            "the driver {driver} takes no packets that came by another interface, without a program"
        ),
        format!("Most drivers can once the node has attached its own. If this one cannot: {slow}"),
    )
}

/// The driver's name, for people. The sysfs that is mounted may belong to another network namespace, whose interface
/// of the same name has another index.
pub fn driver(adapter: &Adapter) -> String {
    if let Some(kind) = &adapter.kind {
        return kind.clone();
    }
    let dir = format!("/sys/class/net/{}", adapter.name);
    let same = proc::text(&format!("{dir}/ifindex")) == Some(adapter.index.to_string());
    let link = std::fs::read_link(format!("{dir}/device/driver"))
        .ok()
        .filter(|_| same);
    let name = link.as_deref().and_then(Path::file_name);
    name.map_or_else(
        || "(unknown)".into(),
        |name| name.to_string_lossy().into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Bad, Good};

    fn with(features: u64, attached: Option<&str>) -> XdpState {
        XdpState {
            features,
            holder: attached.map(|name| XdpHolder {
                id: 7,
                name: Some(name.into()),
            }),
            mode: None,
        }
    }

    #[test]
    fn native_or_generic() {
        let verdict = |features, wish| judge_mode("any", &with(features, None), wish).verdict();
        for wish in [None, Some(Xdp::Native), Some(Xdp::Auto)] {
            assert_eq!(verdict(BASIC, wish), Good);
        }
        assert_eq!(verdict(0, None), Advice);
        assert_eq!(verdict(0, Some(Xdp::Auto)), Advice);
        assert_eq!(verdict(0, Some(Xdp::Native)), Bad);
        assert_eq!(verdict(BASIC, Some(Xdp::Generic)), Advice);
    }

    #[test]
    fn the_place_must_be_free_or_ours() {
        assert_eq!(judge_place("eth0", &with(1, None)).verdict(), Good);
        assert_eq!(
            judge_place("eth0", &with(1, Some("baton_cs"))).verdict(),
            Good
        );
        let taken = judge_place("eth0", &with(1, Some("xdp_dispatcher")));
        assert_eq!(
            (taken.verdict(), taken.found()),
            (Bad, "taken by the program xdp_dispatcher (7)")
        );
    }

    #[test]
    fn from_one_interface_to_another() {
        let judged = |features, attached| judge_redirect("e1000", &with(features, attached), None);
        assert_eq!(judged(BASIC | XMIT, None).verdict(), Good);
        assert_eq!(judged(0, None).verdict(), Advice);
        // Before the node runs, it cannot be known whether the driver will send.
        let before = judged(BASIC, None);
        assert_eq!(before.verdict(), Advice);
        assert!(before.found().ends_with("without a program"), "{before:?}");
        let runs = judged(BASIC, Some("baton_cs"));
        assert_eq!(runs.verdict(), Advice);
        assert!(
            runs.remedy()
                .is_some_and(|remedy| remedy.contains("generic mode"))
        );
        let native = judge_redirect("e1000", &with(BASIC, None), Some(Xdp::Native));
        assert!(
            native
                .remedy()
                .is_some_and(|remedy| remedy.contains("So the node does not start")),
            "{native:?}"
        );
        let generic = judge_redirect("e1000", &with(0, None), Some(Xdp::Generic));
        assert_eq!(generic.verdict(), Good);
    }

    #[test]
    fn a_bond_is_told_by_its_mode() {
        for wish in [Xdp::Native, Xdp::Auto] {
            let bond = judge_mode("bond", &with(0, None), Some(wish));
            assert!(
                bond.remedy()
                    .is_some_and(|remedy| remedy.contains("802.3ad")),
                "{bond:?}"
            );
        }
        let bond = judge_mode("bond", &with(BASIC, None), Some(Xdp::Native));
        assert_eq!(bond.verdict(), Good);
    }

    #[test]
    fn who_cannot_see_accuses_nobody() {
        let unseen = XdpState {
            holder: Some(XdpHolder { id: 7, name: None }),
            ..with(BASIC, None)
        };
        assert_eq!(judge_place("eth0", &unseen).verdict(), Advice);
    }

    #[test]
    fn a_veths_peer_must_take_frames() {
        assert_eq!(judge_veth("eth0", &with(BASIC, None)).verdict(), Bad);
        assert_eq!(
            judge_veth("eth0", &with(BASIC | XMIT, None)).verdict(),
            Advice
        );
    }
}
