//! Durations as people write them: "200ms", "10s", "1h".

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::reading::problem::Problem;
use crate::reading::value::{Read, value};

pub(crate) const MILLISECOND: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// The reader of a duration that lies in `range`.
pub(crate) fn duration(range: RangeInclusive<Duration>) -> impl Read<Duration> {
    value(move |key, text: String| parse(key, &text, &range))
}

fn parse(key: &str, text: &str, range: &RangeInclusive<Duration>) -> Result<Duration, Problem> {
    let duration = humantime::parse_duration(text).map_err(|_| {
        Problem::new(
            format!("{key} = \"{}\" is not a duration", text.escape_debug()),
            "write a number and a unit, like \"200ms\", \"10s\" or \"1h\"",
        )
    })?;
    if range.contains(&duration) {
        return Ok(duration);
    }
    let [least, most] = [*range.start(), *range.end()].map(humantime::format_duration);
    Err(Problem::new(
        format!("{key} = \"{}\" is out of range", text.escape_debug()),
        format!("choose from {least} to {most}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_sample_writes() {
        let all = Duration::ZERO..=Duration::MAX;
        for (text, millis) in [
            ("200ms", 200),
            ("10s", 10_000),
            ("1h", 3_600_000),
            ("1m 1s", 61_000),
        ] {
            assert_eq!(parse("k", text, &all), Ok(Duration::from_millis(millis)));
        }
        for text in ["", "10", "s", "-1s", "1 fortnight", "99999999999999999999s"] {
            assert!(parse("k", text, &all).is_err(), "{text}");
        }
    }

    #[test]
    fn keeps_the_range() {
        let range = Duration::from_secs(1)..=Duration::from_secs(3);
        assert!(parse("k", "1s", &range).is_ok());
        assert!(parse("k", "3s", &range).is_ok());
        assert!(parse("k", "999ms", &range).is_err());
        assert!(parse("k", "3001ms", &range).is_err());
    }
}
