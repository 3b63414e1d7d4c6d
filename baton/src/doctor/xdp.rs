//! Where the connection server's program can run on an interface, and whether the place is free.

use std::{io::stdin, os::fd::AsFd as _, path::Path};

use baton_net::Adapter;
use libbpf_rs::{Xdp, XdpFlags, query::ProgInfoIter};

use super::{finding::Finding, proc};

/// What the kernel says of XDP on an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Xdpable {
    /// `enum netdev_xdp_act` of include/uapi/linux/netdev.h.
    features: u64,
    /// Number and, where we may see it, name of the program that is attached.
    attached: Option<(u32, Option<String>)>,
}

/// Findings: native or generic, whether another program is in the way, and what is special about veth.
pub fn check(adapter: &Adapter) -> Vec<Finding> {
    match look(adapter) {
        Ok(xdp) => {
            let mut findings = vec![
                judge_mode(&driver(adapter), &xdp),
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
            "The connection server's program is attached by XDP: whether this interface can will show when \
             the node starts.",
        )],
    }
}

const MODE: &str = "xdp";
/// Passes, drops and sends back: `NETDEV_XDP_ACT_BASIC`.
const BASIC: u64 = 1;
/// Takes frames to send from a program: `NETDEV_XDP_ACT_NDO_XMIT`.
const XMIT: u64 = 4;
/// The programs of this project begin so.
const OURS: &str = "baton_";

/// In the driver the program runs before the kernel has made anything of a packet; elsewhere after it,
/// which is correct, but slower.
fn judge_mode(driver: &str, xdp: &Xdpable) -> Finding {
    if xdp.features & BASIC != 0 {
        return Finding::good(MODE, format!("native: the driver {driver} knows it"));
    }
    if driver == "bond" {
        return Finding::advice(
            MODE,
            "generic only: this bond has none in its mode, or with its cards",
            "Correct, but several times slower. A bond has native XDP in the modes active-backup, balance-rr, \
             balance-xor and 802.3ad (without xmit_hash_policy vlan+srcmac), if the drivers of all its cards have.",
        );
    }
    Finding::advice(
        MODE,
        format!("generic only: the driver {driver} knows none"),
        "The connection server's program then runs after the kernel has made its own form of each packet: \
         correct, but several times slower. For speed use a NIC whose driver has native XDP, or attach to \
         the NIC itself instead of a bridge, bond or tunnel above it.",
    )
}

/// An interface takes one XDP program in each mode, so another one keeps ours out.
fn judge_place(interface: &str, xdp: &Xdpable) -> Finding {
    const NAME: &str = "xdp_place";
    let remedy = format!(
        "An interface takes one XDP program, and the connection server needs that place: detach the other \
         (ip link set dev {interface} xdp off, or stop what attached it)."
    );
    match &xdp.attached {
        None => Finding::good(NAME, "free"),
        Some((id, Some(name))) if name.starts_with(OURS) => {
            Finding::good(NAME, format!("ours: {name} ({id}) runs"))
        }
        Some((id, Some(name))) => {
            Finding::bad(NAME, format!("taken by the program {name} ({id})"), remedy)
        }
        Some((id, None)) => Finding::advice(
            NAME,
            format!("taken by a program ({id}) whose name only root can see"),
            format!("If it is not baton's own: {remedy}"),
        ),
    }
}

/// A veth can send from XDP only if its peer runs an XDP program too: the kernel shows by this feature
/// that the peer may take such frames (`veth_set_xdp_features` in drivers/net/veth.c). And what arrives
/// over a veth has no TCP checksum yet, unless its sender computes it.
fn judge_veth(interface: &str, xdp: &Xdpable) -> Finding {
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

/// Whether what comes by another interface of the node can leave by this one.
pub fn check_redirect(adapter: &Adapter) -> Finding {
    match look(adapter) {
        Ok(xdp) => judge_redirect(&driver(adapter), &xdp),
        Err(error) => Finding::advice(
            REDIRECT,
            format!("the kernel does not tell: {error}"),
            "Whether packets of another interface can leave by this one will show in `baton status`: XDP native or \
             generic.",
        ),
    }
}

const REDIRECT: &str = "xdp_redirect";

/// A driver sends what a program at another interface redirects only if it can (`ndo_xdp_xmit`), many only while
/// they have a program themselves, as every interface of a node has. Where one cannot, the node attaches all its
/// programs in generic mode, which sends through the kernel.
fn judge_redirect(driver: &str, xdp: &Xdpable) -> Finding {
    let slow = "The node then attaches its programs in generic mode at all its interfaces: correct, but several times \
                slower.";
    let is_ours = matches!(&xdp.attached, Some((_, Some(name))) if name.starts_with(OURS));
    match (xdp.features & XMIT != 0, xdp.features & BASIC != 0) {
        (true, _) => Finding::good(REDIRECT, "takes packets that came by another interface"),
        (false, false) => Finding::advice(
            REDIRECT,
            format!("the driver {driver} knows no XDP"),
            format!(
                "{slow} For speed use NICs whose drivers have native XDP for all interfaces of a node."
            ),
        ),
        (false, true) if is_ours => Finding::advice(
            REDIRECT,
            format!("the driver {driver} takes no packets that came by another interface"),
            format!(
                "{slow} Some drivers can with more queues (ethtool -L) or a newer kernel; a veth can if its peer has \
                 an XDP program. Then start the node again."
            ),
        ),
        (false, true) => Finding::advice(
            REDIRECT,
            format!(
                "the driver {driver} takes no packets that came by another interface, without a program"
            ),
            format!(
                "Most drivers can once the node has attached its own. If this one cannot: {slow}"
            ),
        ),
    }
}

fn look(adapter: &Adapter) -> libbpf_rs::Result<Xdpable> {
    // The descriptor would be for attaching; a question needs none.
    let stdin = stdin();
    let index = i32::try_from(adapter.index).unwrap_or(0);
    let answer = Xdp::new(stdin.as_fd()).query(index, XdpFlags::NONE)?;
    let ids = [
        answer.prog_id,
        answer.drv_prog_id,
        answer.skb_prog_id,
        answer.hw_prog_id,
    ];
    Ok(Xdpable {
        features: answer.feature_flags,
        attached: ids
            .into_iter()
            .find(|id| *id != 0)
            .map(|id| (id, program_name(id))),
    })
}

fn program_name(id: u32) -> Option<String> {
    let program = ProgInfoIter::default().find(|program| program.id == id)?;
    Some(program.name.to_string_lossy().into_owned())
}

/// The driver's name, for people. sysfs may be another network namespace's, whose interface of the same
/// name has another index.
fn driver(adapter: &Adapter) -> String {
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

    fn with(features: u64, attached: Option<&str>) -> Xdpable {
        Xdpable {
            features,
            attached: attached.map(|name| (7, Some(name.into()))),
        }
    }

    #[test]
    fn native_or_generic() {
        assert_eq!(judge_mode("virtio_net", &with(BASIC, None)).verdict(), Good);
        assert_eq!(judge_mode("dummy", &with(0, None)).verdict(), Advice);
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
        let judged = |features, attached| judge_redirect("e1000", &with(features, attached));
        assert_eq!(judged(BASIC | XMIT, None).verdict(), Good);
        assert_eq!(judged(0, None).verdict(), Advice);
        // Before the node runs, nobody can know.
        let before = judged(BASIC, None);
        assert_eq!(before.verdict(), Advice);
        assert!(before.found().ends_with("without a program"), "{before:?}");
        let runs = judged(BASIC, Some("baton_cs"));
        assert_eq!(runs.verdict(), Advice);
        assert!(
            runs.remedy()
                .is_some_and(|remedy| remedy.contains("generic mode"))
        );
    }

    #[test]
    fn a_bond_is_told_by_its_mode() {
        let bond = judge_mode("bond", &with(0, None));
        assert!(
            bond.remedy()
                .is_some_and(|remedy| remedy.contains("802.3ad")),
            "{bond:?}"
        );
        assert_eq!(judge_mode("bond", &with(BASIC, None)).verdict(), Good);
    }

    #[test]
    fn who_cannot_see_accuses_nobody() {
        let unseen = Xdpable {
            attached: Some((7, None)),
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
