//! `[failover]`: which of several connection servers has the cluster addresses.

use std::ops::Range;
use std::ops::RangeInclusive;
use std::time::Duration;

use toml::Spanned;

use crate::reading::field::{Parsed, parse, parse_list};
use crate::reading::raw::RawFailover;
use crate::reading::report::Report;
use crate::values::duration;
use crate::values::name::NodeName;
use crate::values::words::words;

/// Several connection servers of which one at a time, the one in front, has the cluster addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failover {
    /// The candidates, the most preferred one first. There is at least one, and each is listed once.
    pub candidates: Vec<NodeName>,
    /// The time after which a candidate that is not heard counts as gone, 40 ms to 1 min.
    pub detection: Duration,
    /// Whether a preferred candidate that comes back takes the addresses back.
    pub preempt: bool,
    /// How packets for the cluster addresses come to the candidate in front.
    pub address: FrontAddress,
}

/// The way in which packets for the cluster addresses come to the connection server in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontAddress {
    /// The connection server in front has the addresses on its interface, and announces them by ARP.
    Managed,
    /// Something outside baton moves the addresses: keepalived, or an operator.
    External,
    /// Routers bring the packets, and every candidate always has the addresses on `lo`.
    Routed,
}

words!(
    FrontAddress,
    "address =",
    Managed = "managed",
    External = "external",
    Routed = "routed",
);

const SPAN: RangeInclusive<Duration> = Duration::from_millis(40)..=Duration::from_secs(60);
const DETECTION: Duration = Duration::from_millis(300);

/// The values of the section that could be read.
pub(crate) struct Draft {
    pub(crate) header: Range<usize>,
    pub(crate) candidates: Parsed<Vec<Spanned<NodeName>>>,
    detection: Option<Duration>,
    preempt: Option<bool>,
    address: Option<FrontAddress>,
}

impl Draft {
    pub(crate) fn parse(report: &mut Report<'_>, raw: Spanned<RawFailover>) -> Self {
        let header = raw.span();
        let raw = raw.into_inner();
        let candidates = parse_list(report, "candidates", raw.candidates, |name| name.parse());
        let detection = duration::field(report, "detection", raw.detection, SPAN);
        let preempt = parse(report, "preempt", raw.preempt, Ok);
        let address = parse(report, "address", raw.address, |text| text.parse());
        Self {
            header,
            candidates,
            detection: detection.or(DETECTION),
            preempt: preempt.or(false),
            address: address.or(FrontAddress::Managed),
        }
    }

    /// The section, if all of it could be read.
    pub(crate) fn finish(self, candidates: Vec<NodeName>) -> Option<Failover> {
        Some(Failover {
            candidates,
            detection: self.detection?,
            preempt: self.preempt?,
            address: self.address?,
        })
    }
}
