//! A value of the raw schema on its way to its type: where it stands, and what to do if it is
//! absent or wrong.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use toml::Spanned;

use crate::reading::problem::Problem;
use crate::reading::report::{Report, Span};

/// A key that may be absent, whose value may be of the wrong TOML type.
pub(crate) type Field<T> = Option<Spanned<Lenient<T>>>;

/// A key that holds a list of strings.
pub(crate) type List = Field<Vec<Spanned<Lenient<String>>>>;

/// A key that holds a table of strings.
pub(crate) type Table = Field<BTreeMap<String, Spanned<Lenient<String>>>>;

/// A value of the expected TOML type, or what serde said about it. Serde gives up at the first
/// error; this lets it go on, so that all wrong values are reported.
pub(crate) enum Lenient<T> {
    Right(T),
    Wrong(String),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match T::deserialize(deserializer) {
            Ok(value) => Self::Right(value),
            Err(error) => Self::Wrong(error.to_string().trim_end().to_owned()),
        })
    }
}

/// The result of reading a key. `Wrong` has been reported already, so no caller reports it again.
pub(crate) enum Parsed<V> {
    Absent,
    Wrong,
    Right(Spanned<V>),
}

/// Turns the value of `key` into its type, or reports why this fails.
pub(crate) fn parse<T, V>(
    report: &mut Report<'_>,
    key: &str,
    field: Field<T>,
    convert: impl FnOnce(T) -> Result<V, Problem>,
) -> Parsed<V> {
    let Some(field) = field else {
        return Parsed::Absent;
    };
    let span = field.span();
    let converted = match field.into_inner() {
        Lenient::Right(raw) => convert(raw),
        Lenient::Wrong(message) => Err(wrong_type(key, &message)),
    };
    match converted {
        Ok(value) => Parsed::Right(Spanned::new(span, value)),
        Err(problem) => {
            report.error(span, problem);
            Parsed::Wrong
        }
    }
}

/// Turns every item of a list into its type, or reports each item for which this fails.
pub(crate) fn parse_list<V>(
    report: &mut Report<'_>,
    key: &str,
    list: List,
    mut convert: impl FnMut(String) -> Result<V, Problem>,
) -> Parsed<Vec<Spanned<V>>> {
    let items = match parse(report, key, list, Ok) {
        Parsed::Absent => return Parsed::Absent,
        Parsed::Wrong => return Parsed::Wrong,
        Parsed::Right(items) => items,
    };
    let span = items.span();
    let items = items.into_inner();
    let expected = items.len();
    let good: Vec<_> = items
        .into_iter()
        .filter_map(|item| parse(report, key, Some(item), &mut convert).right())
        .collect();
    if good.len() == expected {
        Parsed::Right(Spanned::new(span, good))
    } else {
        Parsed::Wrong
    }
}

/// Turns every value of a table into its type, or reports each value for which this fails.
pub(crate) fn parse_table<V>(
    report: &mut Report<'_>,
    key: &str,
    table: Table,
    convert: impl Fn(&str, String) -> Result<V, Problem>,
) -> Parsed<Vec<(String, V)>> {
    let items = match parse(report, key, table, Ok) {
        Parsed::Absent => return Parsed::Absent,
        Parsed::Wrong => return Parsed::Wrong,
        Parsed::Right(items) => items,
    };
    let span = items.span();
    let items = items.into_inner();
    let expected = items.len();
    let good: Vec<_> = items
        .into_iter()
        .filter_map(|(name, value)| {
            let value = parse(report, &name, Some(value), |text| convert(&name, text));
            Some((name, value.right()?.into_inner()))
        })
        .collect();
    if good.len() == expected {
        Parsed::Right(Spanned::new(span, good))
    } else {
        Parsed::Wrong
    }
}

impl<V> Parsed<V> {
    /// The value if it was given and right.
    pub(crate) fn right(self) -> Option<Spanned<V>> {
        match self {
            Self::Right(value) => Some(value),
            Self::Absent | Self::Wrong => None,
        }
    }

    /// The place of the value in the file; `None` if the key is absent or its value wrong.
    pub(crate) fn span(&self) -> Span {
        match self {
            Self::Right(value) => Some(value.span()),
            Self::Absent | Self::Wrong => None,
        }
    }

    /// The value, or `default` if the key is absent; `None` if it was wrong.
    pub(crate) fn or(self, default: V) -> Option<V> {
        match self {
            Self::Right(value) => Some(value.into_inner()),
            Self::Absent => Some(default),
            Self::Wrong => None,
        }
    }

    /// The same as [`Parsed::or`], with a clone of the value.
    pub(crate) fn clone_or(&self, default: V) -> Option<V>
    where
        V: Clone,
    {
        match self {
            Self::Right(value) => Some(value.get_ref().clone()),
            Self::Absent => Some(default),
            Self::Wrong => None,
        }
    }

    /// The same as [`Parsed::optional`], with a clone of the value.
    pub(crate) fn clone_optional(&self) -> Option<Option<V>>
    where
        V: Clone,
    {
        match self {
            Self::Right(value) => Some(Some(value.get_ref().clone())),
            Self::Absent => Some(None),
            Self::Wrong => None,
        }
    }

    /// The value, or `Some(None)` if the key is absent. The outer `None` means that the value was wrong.
    pub(crate) fn optional(self) -> Option<Option<V>> {
        match self {
            Self::Right(value) => Some(Some(value.into_inner())),
            Self::Absent => Some(None),
            Self::Wrong => None,
        }
    }

    /// The value if it is right. If the key is absent, the problem `missing` is reported at `at`.
    pub(crate) fn required(
        self,
        report: &mut Report<'_>,
        at: impl Into<Span>,
        missing: impl FnOnce() -> Problem,
    ) -> Option<Spanned<V>> {
        if matches!(self, Self::Absent) {
            report.error(at, missing());
        }
        self.right()
    }
}

/// Turns serde's message about a wrong type into a problem with a remedy.
fn wrong_type(key: &str, message: &str) -> Problem {
    let message = message.strip_prefix("invalid type: ").unwrap_or(message);
    let (found, expected) = message
        .split_once(", expected ")
        .unwrap_or((message, "another type"));
    let remedy = match expected {
        "a string" => "write it in quotes, like \"…\"",
        "i64" => "write a whole number, without quotes",
        "a name or a list of names" => "write a name, like \"…\", or a list of them",
        "a sequence" => "write a list, like [\"…\", \"…\"]",
        "a map" => "write a table, like { name = \"…\" }",
        _ => "see the commented baton.toml for this key",
    };
    Problem::new(
        format!("{key} has a value of the wrong type: {found}"),
        remedy,
    )
}
