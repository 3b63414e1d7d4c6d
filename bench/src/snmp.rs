//! Reads what the kernel counts for a network namespace: /proc/net/snmp and /proc/net/netstat.

use anyhow::{Context as _, Result};

/// The value of this name for this protocol, such as "Tcp" or "TcpExt". Lines come in pairs, of which the first names
/// the columns of the second (proc_pid_net(5)).
pub(crate) fn column(text: &str, protocol: &str, name: &str) -> Result<u64> {
    find(text, protocol, name).with_context(|| format!("the kernel counts no {name} of {protocol}"))
}

fn find(text: &str, protocol: &str, name: &str) -> Option<u64> {
    let is_of = |line: &&str| line.split_once(": ").is_some_and(|(of, _)| of == protocol);
    let mut lines = text.lines().filter(is_of);
    let (names, values) = lines.next().zip(lines.next())?;
    let mut columns = names.split(' ').zip(values.split(' '));
    columns.find(|(one, _)| *one == name)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_its_name_above() {
        let text = "TcpExt: A TCPTimeouts B\nTcpExt: 1 22 333\nTcp: TCPTimeouts\nTcp: 4\n";
        assert_eq!(find(text, "TcpExt", "TCPTimeouts"), Some(22));
        assert_eq!(find(text, "Tcp", "TCPTimeouts"), Some(4));
        assert_eq!(find(text, "TcpExt", "C"), None);
    }
}
