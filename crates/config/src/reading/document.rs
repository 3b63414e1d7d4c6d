//! Turns text into the keys of the whole file, and reports every syntax error.

use toml::de::DeTable;

use crate::reading::problem::Problem;
use crate::reading::report::Report;
use crate::reading::schema::{Table as _, keys, table, tables};
use crate::sections::{cluster, cs, failover, forwarding, local, node};
use crate::service;

keys! {
    /// baton.toml: one file for the whole cluster. Every node reads the same file and finds itself in it by name.
    /// Every key is shown with its default. Keys without a default are marked "required".
    /// `baton check baton.toml` says what is wrong with a file, where, and what to do.
    File "" {
        cluster: cluster::Keys = table;
        local: local::Keys = table, default {};
        cs: cs::Keys = table, default {};
        failover: failover::Keys = table;
        forwarding: forwarding::Keys = table;
        node: Vec<node::Keys> = tables, default [];
        service: Vec<service::keys::Keys> = tables, default [];
    }
}

/// The keys of a file, or `None` if the text is not TOML at all.
pub(crate) fn parse(report: &mut Report<'_>, text: &str) -> Option<File> {
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        report.problem(error.span(), syntax(error.message()));
    }
    let (at, table) = (document.span(), document.into_inner());
    errors.is_empty().then(|| File::read(report, at, table))
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
