//! `overflow`: the limits of the policy of that name, beyond which other data servers help the home.

use std::num::NonZeroU32;

use toml::Spanned;

use crate::reading::field::{Field, Parsed, parse};
use crate::reading::problem::Problem;
use crate::reading::raw::RawOverflow;
use crate::reading::report::Report;
use crate::values::name::NodeName;
use crate::values::number::in_range;

/// The home, which is the data server that serves alone, and the limits of its load. At least one limit is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// The home. If it is `None` or not among the data servers, the node that chooses is the home itself if it is
    /// among them, else the first data server is.
    pub home: Option<NodeName>,
    /// The limit for the share of all CPUs of the home that is busy, in permille.
    pub cpu: Option<u16>,
    /// The limit for the number of established connections of the service.
    pub connections: Option<NonZeroU32>,
}

/// The values of the table that could be read; see [`crate::sections::node::Draft`].
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) home: Option<Spanned<NodeName>>,
    rest: Option<(Option<u16>, Option<NonZeroU32>)>,
}

impl Draft {
    pub(crate) fn parse(report: &mut Report<'_>, field: Field<RawOverflow>) -> Parsed<Self> {
        let (span, raw) = match parse(report, "overflow", field, Ok) {
            Parsed::Right(raw) => (raw.span(), raw.into_inner()),
            Parsed::Absent => return Parsed::Absent,
            Parsed::Wrong => return Parsed::Wrong,
        };
        let home = parse(report, "home", raw.home, |text: String| text.parse());
        let cpu = parse(report, "cpu", raw.cpu, permille);
        let connections = parse(report, "connections", raw.connections, |n| {
            let n = in_range::<u32>("connections", n, 1..=1_000_000_000)?;
            NonZeroU32::new(n)
                .ok_or_else(|| Problem::new("connections = 0 is no limit", "choose from 1"))
        });
        if matches!((&cpu, &connections), (Parsed::Absent, Parsed::Absent)) {
            report.error(
                span.clone(),
                Problem::new(
                    "overflow has no limit",
                    "add cpu = 0.8, connections = 1000, or both",
                ),
            );
        }
        let wrong = matches!(home, Parsed::Wrong);
        let rest = cpu.optional().zip(connections.optional());
        let home = home.right();
        if wrong {
            return Parsed::Wrong;
        }
        Parsed::Right(Spanned::new(span, Self { home, rest }))
    }

    /// The settings, if all of them could be read.
    pub(crate) fn finish(self) -> Option<Overflow> {
        let (cpu, connections) = self.rest?;
        Some(Overflow {
            home: self.home.map(Spanned::into_inner),
            cpu,
            connections,
        })
    }
}

/// Converts a share from 0.01 to 1.0 to permille.
fn permille(share: f64) -> Result<u16, Problem> {
    if !(0.01..=1.0).contains(&share) {
        return Err(Problem::new(
            format!("cpu = {share} is out of range"),
            "choose from 0.01 to 1.0: a share of all processors of the node",
        ));
    }
    Ok((share * 1000.0).round() as u16) // at most 1000
}
