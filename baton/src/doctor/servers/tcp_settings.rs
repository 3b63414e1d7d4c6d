//! Checks the kernel's TCP settings without which adoption fails. A connection is adopted by the kernel's own SYN
//! cookie code, which refuses the connection if a setting does not allow what the client and the connection server
//! agreed on (`bpf_sk_assign_tcp_reqsk` in net/core/filter.c, `cookie_v4_check` in net/ipv4/syncookies.c).

use crate::doctor::{finding::Finding, kernel::proc};

/// Checks the settings and returns one finding for each.
pub fn check() -> Vec<Finding> {
    DEMANDS
        .iter()
        .map(|demand| {
            judge(
                demand,
                proc::setting(&format!("net/ipv4/{}", demand.name)).as_deref(),
            )
        })
        .collect()
}

/// A setting of net.ipv4 that must have one of a few values.
struct Demand {
    name: &'static str,
    allowed: &'static [&'static str],
    why: &'static str,
}

const DEMANDS: [Demand; 5] = [
    Demand {
        name: "tcp_syncookies",
        allowed: &["1", "2"],
        why: "A data server's kernel makes an adopted connection's socket by its SYN cookie code: with 0 \
              every connection is refused.",
    },
    Demand {
        name: "tcp_window_scaling",
        allowed: &["1"],
        why: "The connection server agrees on window scaling with every client that can: with 0 a data \
              server's kernel refuses all of these.",
    },
    Demand {
        name: "tcp_sack",
        allowed: &["1"],
        why: "The connection server agrees on selective acknowledgements with every client that can: with 0 \
              a data server's kernel refuses all of these.",
    },
    Demand {
        name: "tcp_timestamps",
        allowed: &["1", "2"],
        why: "The connection server agrees on timestamps with every client that offers them: with 0 a data \
              server's kernel refuses all of these.",
    },
    Demand {
        name: "tcp_rfc1337",
        allowed: &["0"],
        why: "A client may use a port again while the data server still remembers its last connection; \
              baton ends that memory (TIME_WAIT) with a RST, which 1 makes the kernel ignore.",
    },
];

fn judge(demand: &Demand, value: Option<&str>) -> Finding {
    let Demand { name, allowed, why } = demand;
    match value {
        Some(value) if allowed.contains(&value) => Finding::good(name, value),
        Some(value) => Finding::bad(
            name,
            value,
            format!("{why} Change it: sysctl -w net.ipv4.{name}={}", allowed[0]),
        ),
        None => Finding::bad(
            name,
            "this kernel has no such setting",
            format!("{why} Run a kernel that has it (CONFIG_INET=y, CONFIG_SYN_COOKIES=y)."),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Bad, Good};

    #[test]
    fn what_linux_comes_with_is_good() {
        for (demand, value) in DEMANDS.iter().zip(["1", "1", "1", "1", "0"]) {
            assert_eq!(
                judge(demand, Some(value)).verdict(),
                Good,
                "{}",
                demand.name
            );
            assert_eq!(judge(demand, None).verdict(), Bad, "{}", demand.name);
        }
    }

    #[test]
    fn what_breaks_adoption_is_bad() {
        for (demand, value) in DEMANDS.iter().zip(["0", "0", "0", "0", "1"]) {
            let finding = judge(demand, Some(value));
            assert_eq!(finding.verdict(), Bad, "{}", demand.name);
            let command = format!("sysctl -w net.ipv4.{}={}", demand.name, demand.allowed[0]);
            assert!(
                finding
                    .remedy()
                    .is_some_and(|remedy| remedy.ends_with(&command))
            );
        }
    }
}
