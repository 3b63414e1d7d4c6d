//! `path` of a route: what a request target begins with.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use crate::problem::Problem;

/// Longest prefix, in bytes: no more of a target is the key of the programs' table of routes.
const LONGEST: usize = 120;

/// What a request target begins with, byte by byte: `/` first, then visible ASCII, at most 120 bytes
/// in all.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathPrefix(String);

impl PathPrefix {
    /// The prefix as it stands in a request line.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Every target that begins with `/`.
    pub(crate) fn root() -> Self {
        Self("/".into())
    }

    /// Why, though legal, it is not what was meant.
    pub(crate) fn doubt(&self) -> Option<Problem> {
        let path = &self.0;
        let never = |remedy: &str| {
            Problem::new(
                format!("a route for \"{path}\" can never be taken: clients do not send that"),
                remedy,
            )
        };
        if path.contains('#') {
            return Some(never(
                "end before the #: clients keep what follows to themselves",
            ));
        }
        let before_query = path.split('?').next().unwrap_or_default();
        if ["/./", "/../"]
            .iter()
            .any(|dots| before_query.contains(dots))
        {
            return Some(never(
                "write it without \"/./\" and \"/../\", which clients resolve",
            ));
        }
        let prefix = path.strip_suffix('*')?;
        Some(Problem::new(
            format!("the * in \"{path}\" means itself and nothing else"),
            format!("write \"{prefix}\": a path is a prefix"),
        ))
    }
}

impl fmt::Display for PathPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for PathPrefix {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let shown = text.escape_debug();
        if !text.starts_with('/') {
            let remedy = if text.contains("://") {
                "write what follows the host; the host is a key of its own"
            } else {
                "begin with /, or leave path out: the route is then for every path"
            };
            return Err(Problem::new(
                format!("path = \"{shown}\" does not begin with /"),
                remedy,
            ));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Problem::new(
                format!("path = \"{shown}\" has blanks or other characters that no request has"),
                format!("percent-encode them: \"{}\"", encoded(text).escape_debug()),
            ));
        }
        if text.len() > LONGEST {
            return Err(Problem::new(
                format!(
                    "path is {} bytes long, and {LONGEST} is all that the programs compare",
                    text.len()
                ),
                "write a shorter prefix",
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_graphic() {
            encoded.push(byte.into());
        } else {
            // Writing to a string does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_kept_as_they_are() {
        let longest = format!("/{}", "a".repeat(119));
        for good in ["/", "//", "/Images/", "/a%20b?c=*", "/~a/\"<>", &longest] {
            assert_eq!(PathPrefix::from_str(good).unwrap().as_str(), good);
        }
        let longer = longest + "a";
        for bad in [
            "",
            "a",
            "*",
            "http://a/",
            " /",
            "/a b",
            "/a\t",
            "/\0",
            "/\u{7f}",
            "/ä",
            &longer,
        ] {
            assert!(PathPrefix::from_str(bad).is_err(), "{bad}");
        }
        let error = PathPrefix::from_str("/für alle").unwrap_err();
        assert!(error.remedy.contains("\"/f%C3%BCr%20alle\""), "{error}");
    }

    #[test]
    fn doubts() {
        let doubt = |path| PathPrefix::from_str(path).unwrap().doubt();
        for never in ["/a#b", "/a/../b", "/./", "/a/./b?c"] {
            let problem = doubt(never).unwrap();
            assert!(problem.what.contains("never be taken"), "{problem}");
        }
        assert!(doubt("/images/*").unwrap().remedy.contains("\"/images/\""));
        for fine in [
            "/",
            "/a*/b",
            "/.well-known/",
            "/a/..",
            "/...",
            "/?back=/../x",
        ] {
            assert_eq!(doubt(fine), None, "{fine}");
        }
    }
}
