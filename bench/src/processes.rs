//! Measures the processor time of single processes, which other load on the machine does not change.

use std::fs;

use anyhow::{Context as _, Result};

/// The length of a tick: USER_HZ is 100 on every architecture that Linux still has (proc_pid_stat(5)).
const SECONDS_PER_TICK: f64 = 0.01;

/// The seconds that this process and its children have worked, in programs and in the kernel for them.
pub(crate) fn seconds(process: u32) -> Result<f64> {
    let doing = || format!("read what process {process} has done");
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).with_context(doing)?;
    let own = ticks(&stat).with_context(doing)?;
    let path = format!("/proc/{process}/task/{process}/children");
    let children = fs::read_to_string(path).with_context(doing)?;
    let children = children
        .split_ascii_whitespace()
        .map(|child| seconds(child.parse()?));
    Ok(own as f64 * SECONDS_PER_TICK + children.sum::<Result<f64>>()?)
}

/// The sum of fields 14 and 15, utime and stime. The second field, a name in parentheses, may contain anything.
fn ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split(' ').skip(11);
    let (user, system) = (fields.next()?, fields.next()?);
    Some(user.parse::<u64>().ok()? + system.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_fields() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 50 6 7 8 20 0 1 0 99";
        assert_eq!(ticks(stat), Some(56));
        assert_eq!(ticks("7 (a) S 1"), None);
    }
}
