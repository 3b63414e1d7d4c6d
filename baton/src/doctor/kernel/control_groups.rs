//! Checks for control groups of version 2, through which a program learns of sockets.

use baton_dataplane::{control_groups, mounts};

use crate::doctor::finding::Finding;

const NAME: &str = "control_groups";

/// Checks that they are mounted. Without them the congestion window does not travel with a connection.
pub fn check() -> Finding {
    judge(&mounts())
}

fn judge(mounts: &str) -> Finding {
    match control_groups(mounts) {
        Some(place) => Finding::good(NAME, format!("version 2, at {place}")),
        None => Finding::advice(
            NAME,
            "no cgroup2 is mounted",
            "A connection begins slowly again with each handover, because no program hears of new \
             sockets: mount -t cgroup2 none /sys/fs/cgroup, or what your distribution does for it.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Good};

    #[test]
    fn mounted_or_not() {
        let v1 = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n";
        assert_eq!(judge(v1).verdict(), Advice);
        let both = format!("{v1}cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n");
        assert_eq!(judge(&both).verdict(), Good);
        assert_eq!(judge("").verdict(), Advice);
    }
}
