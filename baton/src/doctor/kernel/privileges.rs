//! Checks whether this process may do what a node does.

use baton_dataplane::kernel::Kernel;
use nix::errno::Errno;

use super::proc;
use crate::doctor::finding::Finding;

/// Checks the privileges of this process. A node loads programs, opens raw sockets and gives addresses to interfaces,
/// so it needs root with the capabilities for that, which a container may lack.
pub fn check(kernel: &Kernel) -> Finding {
    judge(&proc::text("/proc/self/status").unwrap_or_default(), kernel)
}

const NAME: &str = "privileges";

/// The capabilities that a node needs (include/uapi/linux/capability.h).
const NEEDED: [(u32, &str); 4] = [
    (12, "CAP_NET_ADMIN"),
    (13, "CAP_NET_RAW"),
    (PERFMON, "CAP_PERFMON"),
    (BPF, "CAP_BPF"),
];
const PERFMON: u32 = 38;
const BPF: u32 = 39;
/// CAP_SYS_ADMIN, which implies CAP_BPF and CAP_PERFMON.
const SYS_ADMIN: u32 = 21;

/// Judges the text of /proc/self/status (proc_pid_status(5)).
fn judge(status: &str, kernel: &Kernel) -> Finding {
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(str::trim)
    };
    // The line lists the real, effective, saved and file system user; the effective one counts.
    let user = field("Uid").and_then(|ids| ids.split_whitespace().nth(1));
    let held = field("CapEff").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    let (Some(user), Some(held)) = (user, held) else {
        return Finding::bad(
            NAME,
            "/proc/self/status does not show user and capabilities",
            "baton reads the kernel's state below /proc: mount it (mount -t proc proc /proc).",
        );
    };
    let holds = |capability: u32| held & (1 << capability) != 0;
    let implied = |capability| [PERFMON, BPF].contains(&capability) && holds(SYS_ADMIN);
    let missing: Vec<&str> = NEEDED
        .into_iter()
        .filter(|(capability, _)| !(holds(*capability) || implied(*capability)))
        .map(|(_, name)| name)
        .collect();
    let why = "A node loads BPF programs, opens raw sockets and gives addresses to interfaces.";
    if user != "0" {
        return Finding::bad(
            NAME,
            format!("user {user}, not root"),
            format!("{why} Run it, and this, as root."),
        );
    }
    if missing.is_empty() {
        return held_back(kernel)
            .unwrap_or_else(|| Finding::good(NAME, "root, with all capabilities needed"));
    }
    let missing = missing.join(", ");
    Finding::bad(
        NAME,
        format!("root without {missing}"),
        format!("{why} Give this container or service {missing}."),
    )
}

/// Finds what keeps a process from BPF although it has all capabilities.
fn held_back(kernel: &Kernel) -> Option<Finding> {
    if !kernel.owns_machine {
        return Some(Finding::bad(
            NAME,
            "root of a user namespace only, as in a rootless container",
            "Only root of the machine may load BPF programs: run it there, or in a container that is root's.",
        ));
    }
    let refused = match Errno::from_raw(kernel.refuses_maps?) {
        Errno::EPERM => "the kernel or a seccomp filter refuses bpf(2) to root",
        Errno::ENOSYS => "there is no bpf(2) here",
        // Other errors, such as a lack of memory, do not concern privileges.
        _ => return None,
    };
    Some(Finding::bad(
        NAME,
        refused,
        "A node loads BPF programs: let the seccomp filter of this container or service allow bpf, and run a \
         kernel built with CONFIG_BPF_SYSCALL=y.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Bad, Good};

    fn status(user: u32, capabilities: &str) -> String {
        format!("Name:\tbaton\nUid:\t1000\t{user}\t0\t0\nCapPrm:\t0\nCapEff:\t{capabilities}\n")
    }

    fn machine() -> Kernel {
        Kernel {
            owns_machine: true,
            ..Kernel::default()
        }
    }

    fn judged(status: &str) -> Finding {
        judge(status, &machine())
    }

    #[test]
    fn root_with_all_it_takes() {
        for good in ["000001fffeffffff", "000000c000003000", "0000000000203000"] {
            assert_eq!(judged(&status(0, good)).verdict(), Good, "{good}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let docker = judged(&status(0, "00000000a80425fb"));
        assert_eq!(docker.verdict(), Bad);
        assert_eq!(
            docker.found(),
            "root without CAP_NET_ADMIN, CAP_PERFMON, CAP_BPF"
        );
        let user = judged(&status(1000, "0000000000000000"));
        assert_eq!((user.verdict(), user.found()), (Bad, "user 1000, not root"));
        assert_eq!(judged("").verdict(), Bad);
    }

    #[test]
    fn capabilities_are_not_all() {
        let all = status(0, "000001fffeffffff");
        let inside = Kernel {
            owns_machine: false,
            ..machine()
        };
        let inside = judge(&all, &inside);
        assert_eq!(inside.verdict(), Bad);
        assert!(inside.found().contains("user namespace"));
        for (errno, word) in [(Errno::EPERM, "seccomp"), (Errno::ENOSYS, "no bpf(2)")] {
            let refusing = Kernel {
                refuses_maps: Some(errno as i32),
                ..machine()
            };
            let refusing = judge(&all, &refusing);
            assert_eq!(refusing.verdict(), Bad);
            assert!(refusing.found().contains(word), "{}", refusing.found());
        }
    }
}
