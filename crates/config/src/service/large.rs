//! `[service.large]`: the pool for large content.

use std::ops::Range;
use std::path::PathBuf;

use toml::Spanned;

use crate::reading::field::{Field, Parsed, parse};
use crate::reading::problem::Problem;
use crate::reading::raw::RawLarge;
use crate::reading::report::Report;
use crate::sections::local::absolute;
use crate::values::name::PoolName;
use crate::values::size::bytes;

/// Which content counts as large, and the pool that serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Large {
    /// The index of the pool in the service's `pools`.
    pub pool: usize,
    /// Files of more bytes than this are large.
    pub larger_than: u64,
    /// The absolute path of the directory on each data server whose files the paths of requests name.
    pub root: PathBuf,
}

/// The values of the section that could be read; see [`crate::sections::node::Draft`].
pub(crate) struct Draft {
    pub(crate) header: Range<usize>,
    pub(crate) pool: Option<Spanned<PoolName>>,
    larger_than: Option<Spanned<u64>>,
    root: Option<Spanned<PathBuf>>,
}

impl Draft {
    pub(crate) fn parse(report: &mut Report<'_>, field: Field<RawLarge>) -> Parsed<Self> {
        let (header, raw) = match parse(report, "large", field, Ok) {
            Parsed::Right(raw) => (raw.span(), raw.into_inner()),
            Parsed::Absent => return Parsed::Absent,
            Parsed::Wrong => return Parsed::Wrong,
        };
        let missing = |key, example| Problem::missing("large", key, example);
        let at = || Some(header.clone());
        let pool = parse(report, "pool", raw.pool, |text| text.parse::<PoolName>()).required(
            report,
            at(),
            || {
                missing(
                    "pool",
                    "\"…\", the name of a [[service.pool]] of this service",
                )
            },
        );
        let larger_than = parse(report, "larger_than", raw.larger_than, |text| {
            bytes("larger_than", &text)
        })
        .required(report, at(), || missing("larger_than", "\"1MiB\""));
        let root = parse(report, "root", raw.root, |text| absolute("root", text)).required(
            report,
            at(),
            || {
                missing(
                    "root",
                    "\"/var/www/html\", where each data server's files are",
                )
            },
        );
        let draft = Self {
            header: header.clone(),
            pool,
            larger_than,
            root,
        };
        Parsed::Right(Spanned::new(header, draft))
    }

    /// The settings, if all of them could be read; `pool` is the index of the pool it names.
    pub(crate) fn finish(self, pool: Option<usize>) -> Option<Large> {
        Some(Large {
            pool: pool?,
            larger_than: self.larger_than?.into_inner(),
            root: self.root?.into_inner(),
        })
    }
}
