//! Turns text into the raw schema, and reports every syntax error and every key that does not exist.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, Deserializer};

use crate::reading::problem::Problem;
use crate::reading::raw::RawConfig;
use crate::reading::report::Report;

/// The schema filled from the text. Entries that did not fit have been reported and are left out.
pub(crate) struct Document {
    pub(crate) raw: RawConfig,
    /// Whether a whole section was left out, so that its absence means nothing.
    pub(crate) torn: bool,
}

/// The document, or `None` when the text is not TOML at all.
pub(crate) fn parse(report: &mut Report<'_>, text: &str) -> Option<Document> {
    let (mut document, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        for error in errors {
            report.error(error.span(), syntax(error.message()));
        }
        return None;
    }
    // Serde stops at the first entry that it does not know. To report all of them, the loop removes the
    // wrong entry and tries the rest again. Each round removes one entry, which bounds the loop by the
    // size of the document.
    let mut torn = false;
    loop {
        let error = match RawConfig::deserialize(Deserializer::from(document.clone())) {
            Ok(raw) => return Some(Document { raw, torn }),
            Err(error) => error,
        };
        let span = error.span();
        let found = span
            .as_ref()
            .and_then(|span| remove(document.get_mut(), span));
        report.error(span, explain(error.message(), found.as_deref()));
        torn |= !is_unknown_key(error.message());
        found?;
    }
}

/// Removes the entry whose key or value has exactly the span `at`. Returns its key, which is empty for an
/// item of a list, or `None` if nothing has this span.
fn remove(table: &mut DeTable<'_>, at: &Range<usize>) -> Option<String> {
    let position = table
        .iter()
        .position(|(key, value)| key.span() == *at || value.span() == *at);
    if let Some(position) = position {
        let key = table.keys().nth(position)?.clone();
        table.remove(&key);
        return Some(key.into_inner().into_owned());
    }
    // Where a table was written as several headers, the innermost match is the one that counts.
    table
        .iter_mut()
        .find_map(|(_, value)| remove_within(value, at))
}

fn remove_within(value: &mut Spanned<DeValue<'_>>, at: &Range<usize>) -> Option<String> {
    match value.get_mut() {
        DeValue::Table(table) => remove(table, at),
        DeValue::Array(items) => {
            if items.iter().any(|item| item.span() == *at) {
                let rest = std::mem::replace(items, DeArray::new())
                    .into_iter()
                    .filter(|item| item.span() != *at);
                *items = rest.collect();
                return Some(String::new());
            }
            items.iter_mut().find_map(|item| remove_within(item, at))
        }
        _ => None,
    }
}

fn syntax(message: &str) -> Problem {
    if message.contains("duplicate key") {
        return Problem::new(
            "this key is given twice",
            "remove one of the two; several nodes or services are written as [[node]], [[service]]",
        );
    }
    Problem::new(
        format!("this is not TOML: {message}"),
        "strings stand in quotes, lists in [ ], one key = value a line; see https://toml.io",
    )
}

fn is_unknown_key(message: &str) -> bool {
    message.starts_with("unknown field")
}

fn explain(message: &str, key: Option<&str>) -> Problem {
    if let (Some(key), Some((_, expected))) = (key, message.rsplit_once(", expected "))
        && is_unknown_key(message)
    {
        // Serde lists the fields in back-quotes; they are our own names and hold none.
        let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
        let what = format!("unknown key \"{}\"", key.escape_debug());
        return Problem::new(what, suggestion(key, &known));
    }
    let message = message.strip_prefix("invalid type: ").unwrap_or(message);
    let (found, expected) = message
        .split_once(", expected ")
        .unwrap_or((message, "a table"));
    let name = key.filter(|key| !key.is_empty()).unwrap_or("this");
    let remedy = match (expected, name) {
        ("a sequence", "node") => "write [[node]], with two brackets: one for each machine",
        ("a sequence", "service") => "write [[service]], with two brackets: one for each service",
        ("a sequence", "pool") => "write [[service.pool]], with two brackets: one for each pool",
        ("a sequence", "route") => "write [[service.route]], with two brackets: one for each route",
        _ => {
            return Problem::new(
                format!("{name} is {found}"),
                format!("it must be {expected}"),
            );
        }
    };
    Problem::new(format!("{name} is not a list"), remedy)
}

/// A remedy for an unknown name: "did you mean" with the nearest known name, or all known names if none is near.
pub(crate) fn suggestion(given: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(given, name), name))
        .filter(|(distance, name)| *distance <= (name.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((_, name)) => format!("did you mean \"{name}\"?"),
        None => format!("it can be: {}", known.join(", ")),
    }
}
