//! `[cs]`: limits of a connection server.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::reading::field::parse;
use crate::reading::raw::RawCs;
use crate::reading::report::Report;
use crate::values::duration;
use crate::values::number::in_range;

/// Limits of a connection server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionServer {
    /// The number of entries in the map `tcbs`, at most 2^28.
    pub flows: NonZeroU32,
    /// The time without a packet after which an open connection is forgotten, 1 s to 30 days.
    pub idle: Duration,
    /// The time after which a closed connection is forgotten, 1 s to 30 days.
    pub closing: Duration,
    /// The time for which packets of an unknown connection get no answer, before they get a RST, 0 to 1 h.
    pub stray_grace: Duration,
    /// The time after which a data server counts as dead if neither its daemon nor its program is heard, 200 ms to 1 h.
    pub dead_after: Duration,
    /// The number of requests that are kept so that their responses can be resumed, at most 2^24.
    pub kept_requests: NonZeroU32,
    /// How long a request waits for a dispatcher on another node, 1 ms to 100 ms.
    pub dispatcher_patience: Duration,
    /// The time without data after which a connection is idle and leaves a data server that drains, 2 s to
    /// 1 h. `None`: idle connections stay until their next request.
    pub release_after: Option<Duration>,
}

const LIFE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(30 * 86_400);
const GRACE: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(3600);
const PATIENCE: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_millis(100);
const RELEASE: RangeInclusive<Duration> = Duration::from_secs(2)..=Duration::from_secs(3600);
const DEATH: RangeInclusive<Duration> = Duration::from_millis(200)..=Duration::from_secs(3600);
const DEFAULT_KEPT: NonZeroU32 = NonZeroU32::MIN.saturating_add((1 << 14) - 1);
const DEFAULT_FLOWS: NonZeroU32 = NonZeroU32::MIN.saturating_add((1 << 20) - 1);

impl ConnectionServer {
    /// Parses the section. `None` if a value is wrong, which has been reported.
    pub(crate) fn parse(report: &mut Report<'_>, raw: RawCs) -> Option<Self> {
        let flows = parse(report, "flows", raw.flows, |value| {
            in_range::<u32>("flows", value, 1..=1 << 28)
        });
        let kept = parse(report, "kept_requests", raw.kept_requests, |value| {
            in_range::<u32>("kept_requests", value, 1..=1 << 24)
        });
        let idle = duration::field(report, "idle", raw.idle, LIFE);
        let closing = duration::field(report, "closing", raw.closing, LIFE);
        let stray_grace = duration::field(report, "stray_grace", raw.stray_grace, GRACE);
        let dead_after = duration::field(report, "dead_after", raw.dead_after, DEATH);
        let patience = duration::field(
            report,
            "dispatcher_patience",
            raw.dispatcher_patience,
            PATIENCE,
        );
        let release = duration::field(report, "release_after", raw.release_after, RELEASE);
        Some(Self {
            flows: NonZeroU32::new(flows.or(DEFAULT_FLOWS.get())?)?,
            idle: idle.or(Duration::from_secs(3600))?,
            closing: closing.or(Duration::from_secs(60))?,
            stray_grace: stray_grace.or(Duration::from_secs(1))?,
            dead_after: dead_after.or(Duration::from_secs(1))?,
            kept_requests: NonZeroU32::new(kept.or(DEFAULT_KEPT.get())?)?,
            dispatcher_patience: patience.or(Duration::from_millis(5))?,
            release_after: release.optional()?,
        })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_default_holds_a_million_flows() {
        assert_eq!(super::DEFAULT_FLOWS.get(), 1_048_576);
    }
}
