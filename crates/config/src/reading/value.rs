//! How values of the file are read: first as a TOML type, then as the type of their key.

use std::collections::BTreeMap;
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeInteger, DeString, DeValue};

use crate::reading::problem::Problem;
use crate::reading::report::Report;

/// A value and its place in the file.
pub(crate) type Value<'a> = Spanned<DeValue<'a>>;

/// What reads the value of a key: a function of the report, the name of the key and the value. It returns `None` if
/// the value is wrong, which it has reported.
pub(crate) trait Read<V>: Fn(&mut Report<'_>, &str, Value<'_>) -> Option<V> {}

impl<V, F: Fn(&mut Report<'_>, &str, Value<'_>) -> Option<V>> Read<V> for F {}

/// The reader of a value of the TOML type `T` that `convert` turns into the type of its key. `convert` is given the
/// name of the key and the value.
pub(crate) fn value<T: Toml, V>(convert: impl Fn(&str, T) -> Result<V, Problem>) -> impl Read<V> {
    move |report: &mut Report<'_>, key: &str, value: Value<'_>| {
        let raw = T::from_toml(key, value.get_ref());
        report.good(value.span(), raw.and_then(|raw| convert(key, raw)))
    }
}

/// Reads a value as it is.
pub(crate) fn plain<T: Toml>(report: &mut Report<'_>, key: &str, given: Value<'_>) -> Option<T> {
    value(|_, raw| Ok(raw))(report, key, given)
}

/// Reads a text from which the type of the key can be parsed.
pub(crate) fn text<V>(report: &mut Report<'_>, key: &str, given: Value<'_>) -> Option<V>
where
    V: FromStr<Err = Problem>,
{
    value(|_, text: String| text.parse())(report, key, given)
}

/// The reader of a list, with the reader of its items. Every item that is wrong is reported.
pub(crate) fn list<V>(item: impl Read<V>) -> impl Read<Vec<Spanned<V>>> {
    move |report: &mut Report<'_>, key: &str, value: Value<'_>| {
        let at = value.span();
        let items = match value.into_inner() {
            DeValue::Array(items) => items,
            other => {
                let wrong = wrong_type(key, &other, "write a list, like [\"…\", \"…\"]");
                return report.good(at, Err(wrong));
            }
        };
        let read = items.into_iter().map(|value| {
            let at = value.span();
            Some(Spanned::new(at, item(report, key, value)?))
        });
        all(read)
    }
}

/// The reader of a table of texts. `convert` is given the name and the text of each entry.
pub(crate) fn entries<V>(
    convert: impl Fn(&str, String) -> Result<V, Problem>,
) -> impl Read<Vec<(String, V)>> {
    let entry = value(convert);
    move |report: &mut Report<'_>, key: &str, value: Value<'_>| {
        let at = value.span();
        let entries = match value.into_inner() {
            DeValue::Table(entries) => entries,
            other => return report.good(at, Err(wrong_type(key, &other, TABLE))),
        };
        let read = entries.into_iter().map(|(name, value)| {
            let name = name.into_inner().into_owned();
            let value = entry(report, &name, value)?;
            Some((name, value))
        });
        all(read)
    }
}

/// All values, or `None` if one is missing. Unlike `collect` it asks for every value, so that each is checked.
fn all<V>(values: impl Iterator<Item = Option<V>>) -> Option<Vec<V>> {
    let values: Vec<Option<V>> = values.collect();
    values.into_iter().collect()
}

/// A type of TOML values.
pub(crate) trait Toml: Sized {
    /// The value of the key, if it is of this type.
    fn from_toml(key: &str, value: &DeValue<'_>) -> Result<Self, Problem>;
}

/// The problem of a value of another type than that of its key.
pub(crate) fn wrong_type(key: &str, value: &DeValue<'_>, remedy: &str) -> Problem {
    let what = format!("{key} has a value of the wrong type: {}", found(value));
    Problem::new(what, remedy)
}

/// What a value is, in words for an error.
pub(crate) fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("string {text:?}"),
        DeValue::Integer(number) => format!("integer `{number}`"),
        DeValue::Float(number) => format!("floating point `{number}`"),
        DeValue::Boolean(value) => format!("boolean `{value}`"),
        DeValue::Datetime(time) => format!("time `{time}`"),
        DeValue::Array(_) => "sequence".to_owned(),
        DeValue::Table(_) => "map".to_owned(),
    }
}

impl Toml for String {
    fn from_toml(key: &str, value: &DeValue<'_>) -> Result<Self, Problem> {
        let text = value.as_str().map(Self::from);
        text.ok_or_else(|| wrong_type(key, value, "write it in quotes, like \"…\""))
    }
}

impl Toml for bool {
    fn from_toml(key: &str, value: &DeValue<'_>) -> Result<Self, Problem> {
        let remedy = "write true or false, without quotes";
        value
            .as_bool()
            .ok_or_else(|| wrong_type(key, value, remedy))
    }
}

impl Toml for i64 {
    fn from_toml(key: &str, value: &DeValue<'_>) -> Result<Self, Problem> {
        let parse = |number: &DeInteger<'_>| Self::from_str_radix(number.as_str(), number.radix());
        let number = value.as_integer().and_then(|number| parse(number).ok());
        number.ok_or_else(|| wrong_type(key, value, "write a whole number, without quotes"))
    }
}

impl Toml for f64 {
    fn from_toml(key: &str, value: &DeValue<'_>) -> Result<Self, Problem> {
        let number = match value {
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => i64::from_toml(key, value).ok().map(|number| number as Self),
        };
        number.ok_or_else(|| wrong_type(key, value, "write a number like 0.8, without quotes"))
    }
}

impl<T: Toml> Toml for BTreeMap<String, T> {
    fn from_toml(key: &str, value: &DeValue<'_>) -> Result<Self, Problem> {
        let entries = value
            .as_table()
            .ok_or_else(|| wrong_type(key, value, TABLE))?;
        let entry = |(name, value): (&Spanned<DeString<'_>>, &Value<'_>)| {
            Ok((name.to_string(), T::from_toml(key, value.get_ref())?))
        };
        entries.iter().map(entry).collect()
    }
}

const TABLE: &str = "write a table, like { name = \"…\" }";
