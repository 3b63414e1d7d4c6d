//! Durations as scenarios write them.

use std::time::Duration;

use serde::Deserialize;

use crate::slowness;

/// A duration such as "500ms" or "2s".
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Span(pub Duration);

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        humantime::parse_duration(&text).map(Span).map_err(|error| {
            format!("{text:?} is no duration ({error}); write it as \"500ms\" or \"2s\"")
        })
    }
}

/// A number of seconds of an ordinary machine; on a slow machine it grows by the same factor as the times in
/// scenarios.
pub fn seconds(count: u64) -> Span {
    Span(slowness::seconds(count))
}
