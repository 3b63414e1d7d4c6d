//! `path` of a route: a prefix of request targets.

use std::fmt::{self, Write as _};
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use baton_wire::{BadPath, Path};

use crate::reading::problem::Problem;

/// The longest prefix in bytes: the key of the programs' table of routes has no more of a target.
const LONGEST: usize = 120;

/// A prefix of request targets: `/` first, then visible ASCII, at most 120 bytes in all. Two prefixes that mean the
/// same are equal, however they are written.
#[derive(Clone, Debug)]
pub struct PathPrefix {
    written: String,
    spelled: Vec<u8>,
}

impl PathPrefix {
    /// The prefix in the canonical spelling of paths ([`Path`]), followed by its query, if it has one, as it was
    /// written. Targets in the canonical spelling are compared with it.
    pub fn spelled(&self) -> &[u8] {
        &self.spelled
    }

    /// A warning about a prefix that is legal but probably does not mean what its writer wanted.
    pub(crate) fn doubt(&self) -> Option<Problem> {
        let path = &self.written;
        if path.contains('#') {
            return Some(Problem::new(
                format!(
                    "the # in \"{path}\" only matches %23: clients send neither a # nor what follows it"
                ),
                "end before the #, or write %23",
            ));
        }
        let before_query = path.split('?').next().unwrap_or_default();
        let same = ["//", "/./", "/../"];
        if same.iter().any(|dots| before_query.contains(dots)) {
            return Some(Problem::new(
                format!(
                    "the path \"{path}\" is read as servers read it: as \"{}\"",
                    String::from_utf8_lossy(&self.spelled)
                ),
                "write that",
            ));
        }
        let prefix = path.strip_suffix('*')?;
        Some(Problem::new(
            format!("the * in \"{path}\" means itself and nothing else"),
            format!("write \"{prefix}\": a path is a prefix"),
        ))
    }
}

impl PartialEq for PathPrefix {
    fn eq(&self, other: &Self) -> bool {
        self.spelled == other.spelled
    }
}

impl Eq for PathPrefix {}

impl Hash for PathPrefix {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.spelled.hash(state);
    }
}

/// Displays the prefix as it stands in the file.
impl fmt::Display for PathPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
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
        let spelled = spell(text).map_err(|bad| {
            Problem::new(
                format!("path = \"{shown}\" is one that servers refuse: {bad}"),
                match bad {
                    BadPath::Escape => "write %25 for a % that means itself",
                    _ => "write the path as servers look it up",
                },
            )
        })?;
        let bytes = text.len().max(spelled.len());
        if bytes > LONGEST {
            return Err(Problem::new(
                format!(
                    "path is {bytes} bytes long, and {LONGEST} is all that the programs compare"
                ),
                "write a shorter prefix",
            ));
        }
        Ok(Self {
            written: text.to_owned(),
            spelled,
        })
    }
}

/// Spells a prefix canonically. If it has a query, its path is a whole path, else a prefix of a path.
fn spell(text: &str) -> Result<Vec<u8>, BadPath> {
    match text.split_once('?') {
        Some((path, query)) => {
            let path = Path::read(path.as_bytes())?;
            Ok([path.as_bytes(), b"?", query.as_bytes()].concat())
        }
        None => Ok(Path::read_prefix(text.as_bytes())?.as_bytes().to_vec()),
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
            assert_eq!(PathPrefix::from_str(good).unwrap().written, good);
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
    fn prefixes_are_spelled_as_targets_are() {
        for (written, spelled) in [
            ("/Images/", &b"/Images/"[..]),
            ("//a/./b/", b"/a/b/"),
            ("/caf%C3%a9/", "/caf\u{e9}/".as_bytes()),
            ("/a%2Fb%20c%3fd", b"/a/b%20c%3Fd"),
            ("/a/../b", b"/b"),
            ("/a/.", b"/a/."),
            ("/a/.?x=/../%41", b"/a/?x=/../%41"),
        ] {
            let prefix = PathPrefix::from_str(written).unwrap();
            assert_eq!(prefix.spelled(), spelled, "{written}");
        }
        let read = |text| PathPrefix::from_str(text).unwrap();
        assert_eq!(read("/a%62/"), read("//ab/"));
        assert_ne!(read("/ab"), read("/ab/"));
        for bad in ["/100%", "/%zz", "/../", "/a/../..?x", "/%00"] {
            let error = PathPrefix::from_str(bad).unwrap_err();
            assert!(error.what.contains("servers refuse"), "{error}");
        }
    }

    #[test]
    fn doubts() {
        let doubt = |path| PathPrefix::from_str(path).unwrap().doubt();
        for other in ["//a", "/a/../b", "/./", "/a/./b?c"] {
            let problem = doubt(other).unwrap();
            assert!(problem.what.contains("as servers read it"), "{problem}");
        }
        assert!(doubt("/a#b").unwrap().remedy.contains("%23"));
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
