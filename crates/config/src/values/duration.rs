//! Durations as people write them: "200ms", "10s", "1h".

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::reading::field::{Field, Parsed};
use crate::reading::problem::Problem;
use crate::reading::report::Report;

/// Parses the duration of a key; one that is wrong or not in `range` is reported.
pub(crate) fn field(
    report: &mut Report<'_>,
    key: &str,
    raw: Field<String>,
    range: RangeInclusive<Duration>,
) -> Parsed<Duration> {
    crate::reading::field::parse(report, key, raw, |text| parse(key, &text, range))
}

/// Parses `text` and checks that it lies in `range`.
fn parse(key: &str, text: &str, range: RangeInclusive<Duration>) -> Result<Duration, Problem> {
    let duration = humantime::parse_duration(text).map_err(|_| {
        Problem::new(
            format!("{key} = \"{}\" is not a duration", text.escape_debug()),
            "write a number and a unit, like \"200ms\", \"10s\" or \"1h\"",
        )
    })?;
    if range.contains(&duration) {
        return Ok(duration);
    }
    let show = humantime::format_duration;
    Err(Problem::new(
        format!("{key} = \"{}\" is out of range", text.escape_debug()),
        format!(
            "choose from {} to {}",
            show(*range.start()),
            show(*range.end())
        ),
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
            assert_eq!(
                parse("k", text, all.clone()),
                Ok(Duration::from_millis(millis))
            );
        }
        for text in ["", "10", "s", "-1s", "1 fortnight", "99999999999999999999s"] {
            assert!(parse("k", text, all.clone()).is_err(), "{text}");
        }
    }

    #[test]
    fn keeps_the_range() {
        let range = Duration::from_secs(1)..=Duration::from_secs(3);
        assert!(parse("k", "1s", range.clone()).is_ok());
        assert!(parse("k", "3s", range.clone()).is_ok());
        assert!(parse("k", "999ms", range.clone()).is_err());
        assert!(parse("k", "3001ms", range).is_err());
    }
}
