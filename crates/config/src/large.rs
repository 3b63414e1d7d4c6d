//! `[service.large]`: large content has a pool of its own.

use std::ops::Range;
use std::path::PathBuf;

use toml::Spanned;

use crate::field::{Field, Parsed, parse};
use crate::name::PoolName;
use crate::problem::Problem;
use crate::raw::RawLarge;
use crate::report::Report;

/// What counts as large, and who serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Large {
    /// Index of one of the service's `pools`.
    pub pool: usize,
    /// Files of more bytes than this.
    pub larger_than: u64,
    /// The directory on each data server whose files requests name by their path. Absolute.
    pub root: PathBuf,
}

/// What could be read of it; see [`crate::node::Draft`].
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
        let missing = |key: &str, example: &str| {
            Problem::new(
                format!("large has no {key}"),
                format!("add {key} = {example}"),
            )
        };
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
        let larger_than = parse(report, "larger_than", raw.larger_than, |text| bytes(&text))
            .required(report, at(), || missing("larger_than", "\"1MiB\""));
        let root =
            parse(report, "root", raw.root, |text| absolute(&text)).required(report, at(), || {
                missing(
                    "root",
                    "\"/var/www/html\", where each data server's files are",
                )
            });
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

const UNITS: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

fn bytes(text: &str) -> Result<u64, Problem> {
    let found = UNITS.iter().find_map(|(unit, factor)| {
        let number: u64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
        number.checked_mul(*factor)
    });
    found.ok_or_else(|| {
        Problem::new(
            format!("larger_than = \"{}\" is no size", text.escape_debug()),
            "write a whole number and a unit, like \"64KiB\", \"1MiB\" or \"10MB\"",
        )
    })
}

fn absolute(text: &str) -> Result<PathBuf, Problem> {
    let path = PathBuf::from(text);
    if path.is_absolute() {
        return Ok(path);
    }
    Err(Problem::new(
        format!("root = \"{}\" is not absolute", text.escape_debug()),
        "write the whole path, beginning with /",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, size) in [
            ("1MiB", 1 << 20),
            ("10 MB", 10_000_000),
            ("0B", 0),
            ("64KiB", 65_536),
        ] {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        for text in [
            "",
            "1",
            "MiB",
            "-1MiB",
            "1.5MiB",
            "1mib",
            "99999999999999GiB",
        ] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
