//! The conditions of a route on a request, besides host and path.

use std::fmt;
use std::str::FromStr;

use regex::bytes::{Regex, RegexBuilder};

use crate::reading::problem::Problem;

/// The largest compiled size of one expression, in bytes: enough for a route, too little for lists of signatures.
const LARGEST: usize = 1 << 18;

/// The conditions of a route. A request, or a TLS connection, must meet all of them; without conditions each matches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Conditions {
    /// The condition on the path, without its query.
    pub regex: Option<Expression>,
    /// The condition on the method.
    pub method: Option<Pattern>,
    /// The conditions on header lines, by name.
    pub header: Vec<(String, Pattern)>,
    /// The conditions on cookies, by name.
    pub cookie: Vec<(String, Pattern)>,
    /// The conditions on parameters of the query, by name.
    pub query: Vec<(String, Pattern)>,
    /// The condition on the protocols that a TLS client offers (ALPN), one of which must meet it.
    pub alpn: Option<Pattern>,
}

impl Conditions {
    /// Whether there are no conditions, so that every request meets them.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A condition on a value. In the file, `text` means exactly this text, and `~text` a regular expression that must
/// match somewhere in the value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// The value is exactly this text.
    Exactly(String),
    /// The expression matches somewhere in the value.
    Regex(Expression),
}

/// Displays the pattern as in the file.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(text) => f.write_str(text),
            Self::Regex(expression) => write!(f, "~{expression}"),
        }
    }
}

impl FromStr for Pattern {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        match text.strip_prefix('~') {
            Some(expression) => expression.parse().map(Self::Regex),
            None => Ok(Self::Exactly(text.to_owned())),
        }
    }
}

/// A regular expression. Two expressions are equal if their texts are equal.
#[derive(Clone, Debug)]
pub struct Expression(Regex);

impl Expression {
    /// The compiled expression.
    pub fn regex(&self) -> &Regex {
        &self.0
    }
}

impl FromStr for Expression {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let built = RegexBuilder::new(text).size_limit(LARGEST).build();
        built.map(Self).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => Problem::new(
                format!(
                    "the regular expression \"{}\" is too large",
                    text.escape_debug()
                ),
                "write fewer or smaller repetitions, or several routes",
            ),
            error => {
                // The last line says what is wrong; the lines before draw where.
                let error = error.to_string();
                let what = error.lines().last().unwrap_or_default();
                Problem::new(
                    format!(
                        "\"{}\" is no regular expression: {}",
                        text.escape_debug(),
                        what.trim_start_matches("error: ")
                    ),
                    "there are no back-references and no look-around; in TOML '…' keeps backslashes",
                )
            }
        })
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Expression {}

impl std::hash::Hash for Expression {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.as_str().hash(state);
    }
}

/// Parses a condition on the method.
pub(crate) fn method(_key: &str, text: String) -> Result<Pattern, Problem> {
    let pattern = text.parse()?;
    if let Pattern::Exactly(name) = &pattern
        && !(name.bytes().all(|byte| byte.is_ascii_uppercase()) && (3..=8).contains(&name.len()))
    {
        return Err(Problem::new(
            format!(
                "\"{}\" is no method that the programs know",
                name.escape_debug()
            ),
            "write 3 to 8 capital letters, like \"POST\", or \"~\" and a regular expression",
        ));
    }
    Ok(pattern)
}

/// Parses a condition on a header line or a cookie. The names of both are tokens (RFC 9110, 5.6.2).
pub(crate) fn named_by_token(name: &str, text: String) -> Result<Pattern, Problem> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(never(name, "no header line and no cookie"));
    }
    text.parse()
}

/// Parses a condition on a parameter of the query.
pub(crate) fn named_in_query(name: &str, text: String) -> Result<Pattern, Problem> {
    let stands = |byte: u8| byte.is_ascii_graphic() && !b"&=#".contains(&byte);
    if name.is_empty() || !name.bytes().all(stands) {
        return Err(never(name, "no parameter"));
    }
    text.parse()
}

fn never(name: &str, what: &str) -> Problem {
    Problem::new(
        format!("{what} of a request is called \"{}\"", name.escape_debug()),
        "write the name as clients send it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let pattern = |text: &str| text.parse::<Pattern>();
        assert_eq!(pattern("a.b"), Ok(Pattern::Exactly("a.b".into())));
        assert_eq!(pattern(""), Ok(Pattern::Exactly(String::new())));
        let Ok(Pattern::Regex(found)) = pattern("~^a.b$") else {
            panic!("a regular expression");
        };
        assert!(found.regex().is_match(b"axb") && !found.regex().is_match(b"axbc"));
        assert_eq!(pattern("~a"), pattern("~a"));
        assert_ne!(pattern("~a"), pattern("~b"));
        assert_ne!(pattern("~a"), pattern("a"));
    }

    #[test]
    fn expressions_that_are_none_or_too_large() {
        let problem = |text: &str| text.parse::<Expression>().unwrap_err();
        assert!(
            problem("(a").what.contains("unclosed group"),
            "{}",
            problem("(a")
        );
        assert!(problem("[0-9]{1000}{1000}").what.contains("too large"));
    }

    #[test]
    fn names_that_requests_have() {
        let exact = || "x".to_owned();
        for good in ["X-Beta", "a", "__Host-id"] {
            assert!(named_by_token(good, exact()).is_ok(), "{good}");
            assert!(named_in_query(good, exact()).is_ok(), "{good}");
        }
        for bad in ["", "a b", "a=b", "ä"] {
            assert!(named_by_token(bad, exact()).is_err(), "{bad}");
            assert!(named_in_query(bad, exact()).is_err(), "{bad}");
        }
        assert!(named_in_query("a[]", exact()).is_ok());
        for good in ["GET", "PROPFIND", "~^P"] {
            assert!(method("method", good.into()).is_ok(), "{good}");
        }
        for bad in ["", "get", "GE", "SUBSCRIBE", "GET "] {
            assert!(method("method", bad.into()).is_err(), "{bad}");
        }
    }
}
