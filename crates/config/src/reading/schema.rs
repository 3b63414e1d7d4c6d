//! The schema of `baton.toml`: every key stands once, in a table of keys, and all that is about keys follows from it.
//!
//! The module of each section declares the keys of the section with [`keys!`]:
//!
//! ```text
//! keys! {
//!     /// Limits of a connection server.
//!     Keys "[cs]", lacks "[cs] has no" {
//!         /// An entry is forgotten after this long without a packet.
//!         idle: Duration = duration(SECOND..=30 * DAY), default "1h";
//!     }
//! }
//! ```
//!
//! This makes the struct `Keys`, with a field `idle` of type `Parsed<Duration>`. `duration(…)` is how the value is
//! read, one of the functions in `reading::value` and `values`. The comments are what the commented `baton.toml` and
//! the manual page say. Behind the reader there may be:
//!
//! - `default`: the value of an absent key, as the file would have it. It is read like a value of the file.
//! - `required`: the key must be there. The text stands behind `key = ` in the remedy for an absent key.
//!   The text behind `lacks` is how the error begins.
//! - `sample`: the value that the commented `baton.toml` sets, if it is not the default.
//! - `example`: the value that the commented `baton.toml` shows in a comment.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::reading::document::suggestion;
use crate::reading::parsed::Parsed;
use crate::reading::report::Report;
use crate::reading::value::{Read, Value, found};

/// One key of a table.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) default: Option<&'static str>,
    pub(crate) required: Option<&'static str>,
    #[cfg(test)]
    pub(crate) sample: Option<&'static str>,
    #[cfg(test)]
    pub(crate) example: Option<&'static str>,
    /// The lines of the text about it.
    #[cfg(test)]
    pub(crate) text: &'static [&'static str],
}

/// A table of `baton.toml` as it was read. [`keys!`] implements it.
pub(crate) trait Table: Sized {
    /// The table's header in the file.
    const HEADER: &'static str;
    /// The message about an absent key that is required, up to the name of the key.
    const LACKS: &'static str;
    /// The keys in the order of the commented `baton.toml`.
    const KEYS: &'static [Key];
    /// The lines of the text about the table.
    #[cfg(test)]
    const TEXT: &'static [&'static str];

    /// Reads all keys of the table that stands at `at`. Reports every wrong value, and every key that does not exist.
    fn read(report: &mut Report<'_>, at: Range<usize>, table: DeTable<'_>) -> Self;
}

/// Declares the keys of a table, as described at the top of this file.
macro_rules! keys {
    ($(#[doc = $about:literal])* $name:ident $header:literal $(, lacks $lacks:literal)? {
        $(
            $(#[doc = $text:literal])*
            $key:ident: $type:ty = $reader:expr
            $(, default $default:tt)? $(, required $required:expr)? $(, sample $sample:tt)? $(, example $example:tt)?;
        )*
    }) => {
        #[doc = concat!("The keys of `", $header, "` as they were read.")]
        pub(crate) struct $name {
            /// The place of the header.
            #[allow(dead_code, reason = "not every section needs it")]
            pub(crate) at: std::ops::Range<usize>,
            $(pub(crate) $key: $crate::reading::parsed::Parsed<$type>,)*
        }

        impl $crate::reading::schema::Table for $name {
            const HEADER: &'static str = $header;
            const LACKS: &'static str = concat!($($lacks)?);
            const KEYS: &'static [$crate::reading::schema::Key] = &[$($crate::reading::schema::Key {
                name: stringify!($key),
                default: $crate::reading::schema::option!($(stringify!($default))?),
                required: $crate::reading::schema::option!($($required)?),
                #[cfg(test)]
                sample: $crate::reading::schema::option!($(stringify!($sample))?),
                #[cfg(test)]
                example: $crate::reading::schema::option!($(stringify!($example))?),
                #[cfg(test)]
                text: &[$($text),*],
            }),*];
            #[cfg(test)]
            const TEXT: &'static [&'static str] = &[$($about),*];

            fn read(
                report: &mut $crate::reading::report::Report<'_>,
                at: std::ops::Range<usize>,
                mut table: toml::de::DeTable<'_>,
            ) -> Self {
                use $crate::reading::schema::{key, unknown_keys};
                let keys = Self {
                    $($key: key::<Self, _>(report, &at, &mut table, stringify!($key), $reader),)*
                    at,
                };
                unknown_keys::<Self>(report, &table);
                keys
            }
        }
    };
}

/// The value, or `None` if there is none.
macro_rules! option {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

pub(crate) use {keys, option};

/// Takes a key out of its table, which stands at `at`, and reads its value.
pub(crate) fn key<T: Table, V>(
    report: &mut Report<'_>,
    at: &Range<usize>,
    table: &mut DeTable<'_>,
    name: &str,
    reader: impl Read<V>,
) -> Parsed<V> {
    if let Some(value) = table.remove(name) {
        let at = value.span();
        let read = reader(report, name, value);
        return read.map_or(Parsed::Wrong, |value| {
            Parsed::Given(Spanned::new(at, value))
        });
    }
    let about = T::KEYS.iter().find(|key| key.name == name);
    if let Some(example) = about.and_then(|key| key.required) {
        let what = format!("{} {name}", T::LACKS);
        report.error(at.clone(), what, format!("add {name} = {example}"));
        return Parsed::Wrong;
    }
    match about.and_then(|key| key.default).map(DeValue::parse) {
        Some(Ok(value)) => reader(report, name, value).map_or(Parsed::Wrong, Parsed::Default),
        // No default is wrong: the test of the documents reads all of them.
        Some(Err(_)) => Parsed::Wrong,
        None => Parsed::Absent,
    }
}

/// Reports the keys that are left in a table after all known ones were taken out.
pub(crate) fn unknown_keys<T: Table>(report: &mut Report<'_>, table: &DeTable<'_>) {
    let known: Vec<&str> = T::KEYS.iter().map(|key| key.name).collect();
    for key in table.keys() {
        let what = format!("unknown key \"{}\"", key.get_ref().escape_debug());
        report.error(key.span(), what, suggestion(key.get_ref(), &known));
    }
}

/// Reads a key that is a table, such as `[cluster]`.
pub(crate) fn table<T: Table>(report: &mut Report<'_>, key: &str, value: Value<'_>) -> Option<T> {
    let at = value.span();
    match value.into_inner() {
        DeValue::Table(table) => Some(T::read(report, at, table)),
        other => {
            let what = format!("{key} is {}", found(&other));
            let remedy = format!("it must be a table, written as {}", T::HEADER);
            report.torn(at, what, remedy);
            None
        }
    }
}

/// Reads a key that is a list of tables, such as `[[node]]`. Items that are no tables are reported and left out.
pub(crate) fn tables<T: Table>(
    report: &mut Report<'_>,
    key: &str,
    value: Value<'_>,
) -> Option<Vec<T>> {
    let at = value.span();
    let DeValue::Array(items) = value.into_inner() else {
        let one = if key == "node" { "machine" } else { key };
        let remedy = format!("write {}, with two brackets: one for each {one}", T::HEADER);
        report.torn(at, format!("{key} is not a list"), remedy);
        return None;
    };
    let read = items.into_iter().map(|item| table(report, "this", item));
    Some(read.flatten().collect())
}
