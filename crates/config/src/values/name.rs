//! Names of nodes, services, pools and interfaces. They are four types, so that none is taken for another.

use crate::reading::problem::Problem;

/// Name of a `[[node]]`: 1-63 letters, digits, `-`, `_` or `.`, beginning with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeName(String);

/// Name of a `[[service]]`: the same letters as a [`NodeName`]. It becomes a metric label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceName(String);

/// Name of a `[[service.pool]]`: the same letters as a [`NodeName`]. It becomes a metric label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolName(String);

/// Name of a network interface: 1-15 bytes without `/` or white space, not `.` or `..`
/// (`dev_valid_name` in net/core/dev.c).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InterfaceName(String);

/// Makes a type of a text that `$check` accepts: with `as_str`, `Display` and `FromStr`.
macro_rules! name {
    ($name:ident, $check:expr) => {
        impl $name {
            /// The text as it stands in the file.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::reading::problem::Problem;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $check(text)?;
                Ok(Self(text.to_owned()))
            }
        }
    };
}

pub(crate) use name;

name!(NodeName, label);
name!(ServiceName, label);
name!(PoolName, label);
name!(InterfaceName, interface);

fn label(text: &str) -> Result<(), Problem> {
    let first = text
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    let rest = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if first && rest && text.len() <= 63 {
        return Ok(());
    }
    Err(Problem::new(
        format!("\"{}\" is not a name", text.escape_debug()),
        "use 1-63 letters, digits, '-', '_' or '.', beginning with a letter or digit",
    ))
}

fn interface(text: &str) -> Result<(), Problem> {
    let legal = |c: char| c != '/' && c != ':' && !c.is_whitespace() && !c.is_control();
    if (1..=15).contains(&text.len()) && text.chars().all(legal) && !matches!(text, "." | "..") {
        return Ok(());
    }
    Err(Problem::new(
        format!(
            "\"{}\" cannot be the name of an interface",
            text.escape_debug()
        ),
        "use a name that `ip link` shows, 1-15 bytes, or leave the key out",
    ))
}

#[cfg(test)]
mod tests {
    use std::str::FromStr as _;

    use super::*;

    #[test]
    fn labels() {
        for good in ["a", "cs1", "web-1.example_x", "1"] {
            assert!(NodeName::from_str(good).is_ok(), "{good}");
        }
        let long = "a".repeat(64);
        for bad in ["", "-a", ".a", "a b", "ä", "a/b", "a\n", &long] {
            assert!(NodeName::from_str(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn interfaces() {
        for good in ["eth0", "enp3s0f1np1", "br-lan", "eth0.100"] {
            assert!(InterfaceName::from_str(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "eth 0", "sixteen-bytes-xx", "eth0:1"] {
            assert!(InterfaceName::from_str(bad).is_err(), "{bad}");
        }
    }
}
