//! Checks how many bytes a client may have in flight towards a server.

use crate::doctor::{finding::Finding, kernel::proc};

/// Checks the announced window scale. The connection server announces one scale for all data servers. If it is smaller
/// than a data server's own choice, uploads over long distances are slower than the server's buffers allow.
pub fn check(window_scale: u8) -> Finding {
    judge(
        proc::setting("net/ipv4/tcp_rmem")
            .as_deref()
            .unwrap_or_default(),
        proc::setting("net/core/rmem_max")
            .as_deref()
            .unwrap_or_default(),
        window_scale,
    )
}

const NAME: &str = "window_scale";
/// The largest window scale (RFC 7323, section 2.3).
const LARGEST: u64 = 14;

fn judge(tcp_rmem: &str, rmem_max: &str, window_scale: u8) -> Finding {
    let &[_, _, largest] = proc::numbers(tcp_rmem).as_slice() else {
        return Finding::advice(
            NAME,
            "cannot read net.ipv4.tcp_rmem",
            "The announced window scale should fit the receive buffers: mount proc at /proc.",
        );
    };
    let space = proc::numbers(rmem_max)
        .first()
        .copied()
        .unwrap_or(0)
        .max(largest);
    let own = own_scale(space);
    let window = 65_535u64 << window_scale;
    let found = format!(
        "{window_scale}: windows up to {}; receive buffers up to {}",
        size(window),
        size(space)
    );
    if u64::from(window_scale) >= own {
        return Finding::good(NAME, found);
    }
    Finding::advice(
        NAME,
        found,
        format!(
            "The window that can be announced limits how much a client may have in flight, which slows \
             uploads over long distances. To use all of the buffers set window_scale = {own} under \
             [cluster]; or ignore this where uploads are small."
        ),
    )
}

/// The scale that the kernel would announce for this many bytes of buffer: `tcp_select_initial_window` in
/// net/ipv4/tcp_output.c.
fn own_scale(space: u64) -> u64 {
    u64::from(space.max(1).ilog2())
        .saturating_sub(15)
        .min(LARGEST)
}

fn size(bytes: u64) -> String {
    if bytes >= 1 << 20 {
        format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
    } else {
        format!("{} KiB", bytes >> 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Good};

    #[test]
    fn as_the_kernel_chooses() {
        assert_eq!(own_scale(6_291_456), 7);
        assert_eq!(own_scale(33_554_432), 10);
        assert_eq!(own_scale(u64::MAX), 14);
        assert_eq!(own_scale(0), 0);
    }

    #[test]
    fn too_small_is_advice() {
        assert_eq!(judge("4096 131072 6291456", "212992", 7).verdict(), Good);
        assert_eq!(judge("4096 131072 6291456", "", 7).verdict(), Good);
        assert_eq!(judge("4096 131072 6291456", "212992", 6).verdict(), Advice);
        let big = judge("4096 131072 33554432", "212992", 7);
        assert_eq!(big.verdict(), Advice);
        assert!(
            big.remedy()
                .is_some_and(|remedy| remedy.contains("window_scale = 10"))
        );
        assert_eq!(
            judge("4096\t131072\t6291456", "134217728", 7).verdict(),
            Advice
        );
        assert_eq!(judge("", "", 7).verdict(), Advice);
    }
}
