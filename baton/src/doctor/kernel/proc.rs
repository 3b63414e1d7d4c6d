//! Reads what the kernel says of itself, as text.

use std::fs;

/// The contents of a file below /proc or /sys, without white space around it; `None` if this kernel or network
/// namespace does not have the file.
pub fn text(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

/// A kernel setting, by its path below /proc/sys.
pub fn setting(name: &str) -> Option<String> {
    text(&format!("/proc/sys/{name}"))
}

/// All whole numbers in a text, whatever stands between them.
pub fn numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_setting() {
        assert_eq!(numbers("4096\t131072\t6291456"), [4096, 131_072, 6_291_456]);
        assert!(numbers("none").is_empty());
    }

    #[test]
    fn what_is_not_there_is_none() {
        assert!(setting("kernel/osrelease").is_some());
        assert_eq!(setting("net/ipv4/no_such_setting"), None);
    }
}
