//! The kernel's version.

use super::{finding::Finding, proc};

/// `bpf_sk_assign_tcp_reqsk`, which builds a socket out of a packet and a few numbers, came with
/// 6.9; nothing else can adopt a connection.
pub fn check() -> Finding {
    judge(&proc::setting("kernel/osrelease").unwrap_or_default())
}

const NAME: &str = "kernel";
const NEEDED: (u64, u64) = (6, 9);

fn judge(release: &str) -> Finding {
    let version = match *proc::numbers(release) {
        [major, minor, ..] => (major, minor),
        _ => (0, 0),
    };
    if version >= NEEDED {
        return Finding::good(NAME, release);
    }
    Finding::bad(
        NAME,
        if release.is_empty() {
            "unknown"
        } else {
            release
        },
        "A data server adopts connections with bpf_sk_assign_tcp_reqsk, which came with Linux 6.9: \
         install a newer kernel (Debian: from backports).",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Bad, Good};

    #[test]
    fn since_six_nine() {
        for good in ["6.9.0", "6.18.44-fc", "7.0-rc1", "6.12.9+deb13-amd64"] {
            assert_eq!(judge(good).verdict(), Good, "{good}");
        }
        for bad in ["6.8.12", "5.19.0-50-generic", "4.4", "", "linux"] {
            assert_eq!(judge(bad).verdict(), Bad, "{bad}");
        }
    }
}
