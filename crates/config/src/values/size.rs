//! Sizes: a whole number and a unit.

use crate::reading::problem::Problem;

const UNITS: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// Parses `text`, a whole number and a unit, as a number of bytes.
pub(crate) fn size(key: &str, text: String) -> Result<u64, Problem> {
    let found = UNITS.iter().find_map(|(unit, factor)| {
        let number: u64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
        number.checked_mul(*factor)
    });
    found.ok_or_else(|| {
        Problem::new(
            format!("{key} = \"{}\" is no size", text.escape_debug()),
            "write a whole number and a unit, like \"64KiB\", \"1MiB\" or \"10MB\"",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("1MiB", 1 << 20),
            ("10 MB", 10_000_000),
            ("0B", 0),
            ("64KiB", 65_536),
        ] {
            assert_eq!(size("key", text.into()), Ok(bytes), "{text}");
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
            assert!(size("key", text.into()).is_err(), "{text}");
        }
    }
}
