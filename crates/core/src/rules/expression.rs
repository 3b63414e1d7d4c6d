//! A regular expression, which can go to another process.

use std::borrow::Cow;

use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A regular expression. For another process it is its text.
#[derive(Clone, Debug)]
pub struct Expression(Regex);

impl Expression {
    /// Whether the expression matches somewhere in the value.
    pub fn matches(&self, value: &[u8]) -> bool {
        self.0.is_match(value)
    }
}

impl From<Regex> for Expression {
    fn from(regex: Regex) -> Self {
        Self(regex)
    }
}

impl Serialize for Expression {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl<'de> Deserialize<'de> for Expression {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        // Whoever has made the expression has found its size to be right.
        let regex = RegexBuilder::new(&text).size_limit(usize::MAX).build();
        regex.map(Self).map_err(D::Error::custom)
    }
}
