//! `[service.health]`: how a data server checks its own local server.

use std::fmt;
use std::num::NonZeroU8;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use toml::Spanned;

use crate::reading::field::{Field, Parsed, parse};
use crate::reading::problem::Problem;
use crate::reading::raw::RawHealth;
use crate::reading::report::Report;
use crate::values::duration;
use crate::values::number::in_range;
use crate::values::words::one_of;

/// How a data server checks its own local server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// What each try does.
    pub probe: Probe,
    /// The time between two tries, 10 ms to 1 h.
    pub interval: Duration,
    /// The time after which a try has failed, at least 1 ms and shorter than `interval`.
    pub timeout: Duration,
    /// The number of successful tries after which the server counts as healthy.
    pub rise: NonZeroU8,
    /// The number of failed tries after which the server counts as unhealthy.
    pub fall: NonZeroU8,
}

/// What a health check tries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The try succeeds if a TCP connection is accepted.
    Tcp,
    /// The try succeeds if a GET of this path is answered with a status of 200-399.
    Http(HttpPath),
}

/// Path of an HTTP request: begins with `/`, visible ASCII only, at most 1024 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpPath(String);

impl HttpPath {
    /// The path as it stands in the request line.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HttpPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for HttpPath {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let legal = text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.starts_with('/') && legal && text.len() <= 1024 {
            return Ok(Self(text.to_owned()));
        }
        Err(Problem::new(
            format!(
                "path = \"{}\" is not the path of a request",
                text.escape_debug()
            ),
            "begin with / and write no spaces; percent-encode what is not ASCII",
        ))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Tcp,
    Http,
    None,
}

const KINDS: &[(&str, Kind)] = &[
    ("tcp", Kind::Tcp),
    ("http", Kind::Http),
    ("none", Kind::None),
];
const INTERVAL: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(3600);
const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3600);

impl HealthCheck {
    /// Parses the section. The outer `None` means that a value is wrong, which has been reported; the
    /// inner `None` means kind "none". Under kind "none" the other keys are checked and then ignored, so
    /// that a check can be switched off by one word.
    pub(crate) fn parse(
        report: &mut Report<'_>,
        raw: Option<Spanned<RawHealth>>,
    ) -> Option<Option<Self>> {
        let Some(raw) = raw else {
            return Some(Some(Self::default()));
        };
        let raw = raw.into_inner();
        let kind = parse(report, "kind", raw.kind, |text| {
            one_of("kind", &text, KINDS)
        });
        let kind = kind.or(Kind::Tcp);
        let path = parse(report, "path", raw.path, |text| text.parse::<HttpPath>());
        if let (Some(Kind::Tcp), Parsed::Right(path)) = (kind, &path) {
            report.error(
                path.span(),
                Problem::new(
                    "path means nothing to a check of kind \"tcp\"",
                    "add kind = \"http\"",
                ),
            );
        }
        let interval = duration::field(report, "interval", raw.interval, INTERVAL);
        let timeout = duration::field(report, "timeout", raw.timeout, TIMEOUT);
        let (interval, timeout) = shorter(report, interval, timeout);
        let mut count = |key: &str, field: Field<i64>| {
            parse(report, key, field, |n| in_range::<u8>(key, n, 1..=255))
        };
        let rise = count("rise", raw.rise);
        let fall = count("fall", raw.fall);

        let default = Self::default();
        let check = Self {
            probe: match kind? {
                Kind::Http => Probe::Http(path.or(HttpPath("/".into()))?),
                Kind::Tcp | Kind::None => Probe::Tcp,
            },
            interval: interval?,
            timeout: timeout?,
            rise: NonZeroU8::new(rise.or(default.rise.get())?)?,
            fall: NonZeroU8::new(fall.or(default.fall.get())?)?,
        };
        Some((kind? != Kind::None).then_some(check))
    }
}

/// The check of a service without `[service.health]`.
impl Default for HealthCheck {
    fn default() -> Self {
        Self {
            probe: Probe::Tcp,
            interval: Duration::from_secs(1),
            timeout: Duration::from_millis(500),
            rise: NonZeroU8::MIN,
            fall: NonZeroU8::MIN.saturating_add(1),
        }
    }
}

/// Interval and timeout, or their defaults. Reports a timeout that is not shorter than the interval.
fn shorter(
    report: &mut Report<'_>,
    interval: Parsed<Duration>,
    timeout: Parsed<Duration>,
) -> (Option<Duration>, Option<Duration>) {
    let at = timeout.span().or(interval.span());
    let default = HealthCheck::default();
    let (interval, timeout) = (interval.or(default.interval), timeout.or(default.timeout));
    if let (Some(interval), Some(timeout)) = (interval, timeout)
        && timeout >= interval
    {
        let show = humantime::format_duration;
        report.error(
            at,
            Problem::new(
                format!(
                    "timeout ({}) is not shorter than interval ({})",
                    show(timeout),
                    show(interval)
                ),
                "shorten timeout or lengthen interval: one check ends before the next begins",
            ),
        );
    }
    (interval, timeout)
}
