//! `host` of a route: the names of hosts that the route matches.

use std::fmt;
use std::str::FromStr;

use crate::reading::problem::Problem;

/// The longest pattern in bytes, as it is written: the key of the programs' map of hosts has room for no more.
const LONGEST: usize = 63;

/// The hosts that a route matches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// Every host, and requests that name no host.
    Any,
    /// The host of this name.
    Exact(HostName),
    /// Every name below this one, at any depth, not the name itself: `*.name`.
    Below(HostName),
}

/// Name of a host in lower case: labels of letters, digits, `-` and `_`, separated by dots, at most
/// 63 bytes in all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostName(String);

impl HostName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Displays the pattern as in the file; [`HostPattern::Any`] is empty text.
impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => Ok(()),
            Self::Exact(name) => name.fmt(f),
            Self::Below(name) => write!(f, "*.{name}"),
        }
    }
}

impl FromStr for HostPattern {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        if text.is_empty() || text == "*" {
            return Err(Problem::new(
                format!("\"{text}\" is not the name of a host"),
                "leave host out: the route is then for any host",
            ));
        }
        let (name, below) = match text.strip_prefix("*.") {
            Some(suffix) => (suffix, true),
            None => (text, false),
        };
        legal(name).map_err(|remedy| {
            port(text, name).unwrap_or_else(|| {
                Problem::new(
                    format!("\"{}\" is not the name of a host", text.escape_debug()),
                    remedy,
                )
            })
        })?;
        if text.len() > LONGEST {
            return Err(Problem::new(
                format!(
                    "host is {} bytes long, and {LONGEST} is all that the programs' map of hosts \
                     holds",
                    text.len()
                ),
                "write \"*.\" and a shorter suffix",
            ));
        }
        let name = HostName(name.to_ascii_lowercase());
        Ok(if below {
            Self::Below(name)
        } else {
            Self::Exact(name)
        })
    }
}

/// The problem of a name that is right except for a port behind it; `None` if anything else is wrong.
fn port(text: &str, name: &str) -> Option<Problem> {
    let (name, port) = name.rsplit_once(':')?;
    let (shown, _) = text.rsplit_once(':')?;
    (legal(name).is_ok() && port.bytes().all(|byte| byte.is_ascii_digit())).then(|| {
        Problem::new(
            format!("host = \"{text}\" has a port"),
            format!("write \"{shown}\": the port that a client writes is not looked at"),
        )
    })
}

/// Checks the name of a host; an error is the remedy.
fn legal(name: &str) -> Result<(), &'static str> {
    let foreign = |c: &char| !c.is_ascii_alphanumeric() && !"-_.".contains(*c);
    match name.chars().find(foreign) {
        None => {}
        Some('*') => return Err("write an exact name, or \"*.\" and a suffix: \"*.example.org\""),
        Some(c) if !c.is_ascii() => {
            return Err("write it as clients send it, in ASCII: \"xn--…\"");
        }
        Some('/' | ':') => {
            return Err("write the name alone; what begins with / is the route's path");
        }
        Some(_) => return Err("use letters, digits, '-', '_' and '.'"),
    }
    if name.split('.').any(str::is_empty) {
        return Err("write something between all dots, and none at the ends");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_kept_in_lower_case() {
        let pattern = |text| HostPattern::from_str(text).unwrap();
        assert_eq!(
            pattern("WWW.Example.org"),
            HostPattern::Exact(HostName("www.example.org".into()))
        );
        assert_eq!(
            pattern("*.Example.org"),
            HostPattern::Below(HostName("example.org".into()))
        );
        for text in [
            "localhost",
            "*.org",
            "a_b.c-d",
            "192.0.2.1",
            "xn--bcher-kva.example",
        ] {
            assert_eq!(pattern(text).to_string(), text);
        }
    }

    #[test]
    fn what_no_client_sends_as_a_host_is_refused() {
        for bad in [
            "",
            "*",
            "*.",
            ".",
            "*.*.org",
            "a*.org",
            "*org",
            ".org",
            "org.",
            "a..b",
            "a b",
            "a:80",
            "[::1]",
            "[::1]:80",
            "::1",
            "http://a",
            "a/b",
            "bücher.example",
            "a\n",
            "a:",
            ":80",
        ] {
            assert!(HostPattern::from_str(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn as_long_as_the_key_of_the_map() {
        let labels = "abcdefg.".repeat(8);
        assert!(HostPattern::from_str(&labels[..63]).is_ok());
        let error = HostPattern::from_str(&format!("*.{}", &labels[..62])).unwrap_err();
        assert!(error.what.contains("64 bytes"), "{error}");
    }
}
