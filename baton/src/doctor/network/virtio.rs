//! Checks the card of a virtual machine (virtio-net). Offloads of its host can prevent native XDP, and it may have too
//! few queues for native XDP.

use baton_config::Xdp;
use baton_dataplane::{XdpMode, kernel::XdpState};
use baton_net::{
    Adapter,
    queues::{Queues, queues},
};

use super::xdp;
use crate::doctor::{finding::Finding, kernel::proc};

/// Checks a virtio-net card whose program is to run natively. Returns no findings for other cards. `wish` is the XDP
/// mode that the configuration sets for this node.
pub async fn check(adapter: &Adapter, wish: Option<Xdp>) -> Vec<Finding> {
    if xdp::driver(adapter) != DRIVER || wish == Some(Xdp::Generic) {
        return Vec::new();
    }
    let state = XdpState::of(adapter.index).unwrap_or_default();
    let is_native = state.mode == Some(XdpMode::Native);
    let features = proc::text(&format!("/sys/class/net/{}/device/features", adapter.name));
    let found = queues(&adapter.name)
        .await
        .map_err(|error| error.to_string());
    vec![
        judge_offloads(
            &adapter.name,
            features.as_deref().unwrap_or_default(),
            is_native,
            wish,
        ),
        judge_queues(&adapter.name, found, processors(), is_native),
    ]
}

const DRIVER: &str = "virtio_net";

/// Feature bits of include/uapi/linux/virtio_net.h that allow the host to deliver unfinished packets to the machine.
/// The driver refuses native XDP with any of them (`virtnet_xdp_set` in drivers/net/virtio_net.c), unless
/// [`CTRL_GUEST_OFFLOADS`] is set.
const UNFINISHED: [(usize, &str); 7] = [
    (1, "guest_csum"),
    (7, "guest_tso4"),
    (8, "guest_tso6"),
    (9, "guest_ecn"),
    (10, "guest_ufo"),
    (54, "guest_uso4"),
    (55, "guest_uso6"),
];
/// The feature bit that allows the driver to switch these offloads off itself.
const CTRL_GUEST_OFFLOADS: usize = 2;

/// Judges the card's offloads. `features` has a digit for each bit on which the host and the driver have agreed, as
/// the kernel shows them.
fn judge_offloads(interface: &str, features: &str, is_native: bool, wish: Option<Xdp>) -> Finding {
    const NAME: &str = "virtio_offloads";
    if is_native {
        return Finding::good(NAME, "a program runs natively");
    }
    let has = |bit: usize| features.as_bytes().get(bit) == Some(&b'1');
    let on: Vec<&str> = (UNFINISHED.iter())
        .filter(|(bit, _)| has(*bit))
        .map(|(_, name)| *name)
        .collect();
    if features.is_empty() {
        return Finding::advice(
            NAME,
            format!("/sys shows no features of {interface}"),
            "Whether the virtual machine's host leaves room for native XDP will show when the node starts.",
        );
    }
    if on.is_empty() {
        return Finding::good(NAME, "the host merges and leaves out nothing");
    }
    if has(CTRL_GUEST_OFFLOADS) {
        return Finding::good(
            NAME,
            "the driver switches off what native XDP does not allow",
        );
    }
    let off: Vec<String> = on.iter().map(|name| format!("{name}=off")).collect();
    let found = format!(
        "{interface}: the virtual machine's host merges segments or leaves out checksums ({}), and the driver \
         cannot switch that off: it refuses native XDP",
        on.join(", ")
    );
    let remedy = format!(
        "Change the machine's NIC on its host. QEMU: -device virtio-net-pci,…,ctrl_guest_offloads=on, with which \
         the driver can switch that off, or {}. libvirt: in the interface's <driver>, <guest csum='off' tso4='off' \
         tso6='off' ecn='off' ufo='off'/>.",
        off.join(",")
    );
    let slow = "the program then runs in generic mode, several times slower.";
    match wish {
        Some(Xdp::Native) => Finding::bad(
            NAME,
            found,
            format!(
                "So the node does not start. {remedy} Or write xdp = \"auto\" under this [[node]]: {slow}"
            ),
        ),
        _ => Finding::advice(
            NAME,
            found,
            format!("A node needs xdp = \"auto\" for it in the configuration: {slow} {remedy}"),
        ),
    }
}

/// Checks that the card has enough queues. For XDP, each processor sends by a queue of its own, besides those that the
/// kernel uses. If there are too few, all processors share the kernel's queues under a lock, and the kernel logs "XDP
/// request 4 queues but max is 2".
fn judge_queues(
    interface: &str,
    found: Result<Queues, String>,
    processors: u32,
    is_native: bool,
) -> Finding {
    const NAME: &str = "virtio_queues";
    let why = "A packet that leaves by a queue that processors share waits for a lock: correct, but slower the more \
               processors there are.";
    let Queues { used, most } = match found {
        Ok(found) => found,
        Err(error) => {
            return Finding::advice(
                NAME,
                error.lines().next().unwrap_or_default(),
                format!("{why} See that the card has enough: ethtool -l {interface}"),
            );
        }
    };
    // On a card that runs a native program, the queues for XDP are among the used ones already.
    let (of_kernel, enough) = match is_native {
        true => (used.saturating_sub(processors), used > processors),
        false => (used, used + processors <= most),
    };
    if enough {
        return Finding::good(
            NAME,
            format!("{most}: enough for {of_kernel} of the kernel and {processors} for XDP"),
        );
    }
    let wanted = used + processors;
    let fewer = match most.checked_sub(processors) {
        Some(left @ 1..) => format!(
            " Or, before the node starts, leave the kernel fewer of them: ethtool -L {interface} combined {left}."
        ),
        _ => String::new(),
    };
    Finding::advice(
        NAME,
        format!(
            "{most}: native XDP wants {wanted}, {used} for the kernel and one for each of {processors} processors"
        ),
        format!(
            "{why} Give the virtual machine's NIC {} queues on its host (QEMU: queues=N of -netdev, mq=on,vectors=2N+2 \
             of -device; libvirt: <driver queues='N'/>).{fewer}",
            2 * processors
        ),
    )
}

/// The number of all processors that may ever be there, for which the driver reserves queues. The file has the form
/// "0-1" or "0,2-3".
fn processors() -> u32 {
    let possible = proc::text("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = proc::numbers(&possible).into_iter().max();
    last.and_then(|last| u32::try_from(last + 1).ok())
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Bad, Good};

    /// The text of a `features` file in which these bits are set.
    fn features(bits: &[usize]) -> String {
        let digit = |bit| if bits.contains(&bit) { '1' } else { '0' };
        (0..128).map(digit).collect()
    }

    #[test]
    fn what_the_host_leaves_unfinished() {
        let judged = |bits: &[usize], wish| judge_offloads("eth0", &features(bits), false, wish);
        // Offloads for sending do not matter: VIRTIO_NET_F_CSUM, HOST_TSO4.
        assert_eq!(judged(&[0, 11, 15], None).verdict(), Good);
        for (bit, name) in UNFINISHED {
            let bad = judged(&[0, bit], Some(Xdp::Native));
            assert_eq!(bad.verdict(), Bad, "{name}");
            let remedy = bad.remedy().unwrap_or_default();
            assert!(remedy.contains(&format!("or {name}=off.")), "{remedy}");
            for wish in [None, Some(Xdp::Auto)] {
                assert_eq!(judged(&[0, bit], wish).verdict(), Advice);
            }
            let may = judged(&[CTRL_GUEST_OFFLOADS, bit], Some(Xdp::Native));
            assert_eq!(may.verdict(), Good, "{name}");
        }
        let runs = judge_offloads("eth0", &features(&[1, 7]), true, None);
        assert_eq!(runs.verdict(), Good);
        assert_eq!(judge_offloads("eth0", "", false, None).verdict(), Advice);
    }

    #[test]
    fn a_queue_for_each_processor() {
        let judged = |used, most, processors, is_native| {
            let found = Ok(Queues { used, most });
            judge_queues("eth0", found, processors, is_native)
        };
        assert_eq!(judged(2, 4, 2, false).verdict(), Good);
        // Here the driver has taken the queues for XDP.
        assert_eq!(judged(4, 4, 2, true).verdict(), Good);
        let few = judged(2, 2, 2, false);
        assert_eq!(few.verdict(), Advice);
        assert!(few.found().starts_with("2: native XDP wants 4"), "{few}");
        assert!(
            few.remedy()
                .is_some_and(|remedy| remedy.contains("4 queues"))
        );
        assert!(!few.to_string().contains("ethtool -L"), "{few}");
        // Here the driver has not got queues for XDP.
        assert_eq!(judged(2, 2, 2, true).verdict(), Advice);
        let some = judged(4, 6, 4, false);
        assert_eq!(some.verdict(), Advice);
        assert!(
            some.to_string().contains("ethtool -L eth0 combined 2"),
            "{some}"
        );
        let unknown = judge_queues("eth0", Err("no\nhelp".into()), 2, false);
        assert_eq!((unknown.verdict(), unknown.found()), (Advice, "no"));
    }
}
