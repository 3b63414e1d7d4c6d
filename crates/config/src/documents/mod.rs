//! The commented `baton.toml` and the manual page baton.toml(5), made from the schema.
//!
//! `BLESS=1 cargo test -p baton-config --lib documents` writes both files; read the difference.

mod manual;
mod sample;

use std::path::Path;
use std::{env, fs};

use toml::de::{DeTable, DeValue};

use crate::reading::report::Report;
use crate::reading::schema::{Key, Table};
use crate::sections::{cluster, cs, failover, forwarding, local, node};
use crate::service::{health, keys, large, overflow, pool, route};

/// A table as the documents show it.
struct Part {
    header: &'static str,
    text: &'static [&'static str],
    keys: &'static [Key],
    /// Whether the sample has the texts of keys beside them and not above.
    is_beside: bool,
    /// Whether the sample has the whole table as a comment.
    is_off: bool,
}

/// All tables in the order of the documents.
fn parts() -> [Part; 12] {
    let (above, beside, on, off) = (false, true, false, true);
    [
        part::<cluster::Keys>(above, on),
        part::<local::Keys>(above, on),
        part::<cs::Keys>(above, on),
        part::<failover::Keys>(above, off),
        part::<forwarding::Keys>(above, off),
        part::<node::Keys>(beside, on),
        part::<keys::Keys>(above, on),
        part::<overflow::Keys>(beside, off),
        part::<health::Keys>(beside, on),
        part::<large::Keys>(beside, off),
        part::<pool::Keys>(beside, off),
        part::<route::Keys>(beside, off),
    ]
}

/// The part that shows a table, whose defaults are checked: in an empty table only keys that are required are wrong.
fn part<T: Table>(is_beside: bool, is_off: bool) -> Part {
    let mut report = Report::new(Path::new(""), "");
    T::read(&mut report, 0..0, DeTable::new());
    let (wrong, _) = report.into_findings();
    let required = T::KEYS.iter().filter(|key| key.required.is_some());
    assert_eq!(wrong.len(), required.count(), "{wrong:?}");
    let mut defaults = T::KEYS.iter().filter_map(|key| key.default);
    assert!(
        defaults.all(|default| DeValue::parse(default).is_ok()),
        "{}",
        T::HEADER
    );
    Part {
        header: T::HEADER,
        text: T::TEXT,
        keys: T::KEYS,
        is_beside,
        is_off,
    }
}

impl Key {
    /// The default, unless it is an empty list or table.
    fn default_shown(&self) -> Option<&'static str> {
        self.default
            .filter(|default| !["[]", "{}"].contains(default))
    }
}

/// The lines of a text, without the blank that each begins with in the schema.
fn lines(text: &[&str]) -> Vec<String> {
    let bare = |line: &&str| line.strip_prefix(' ').unwrap_or(line).to_owned();
    text.iter().map(bare).collect()
}

/// The text with lines as long as possible. Lines that begin with a blank are kept, and an empty line ends a paragraph.
fn fill(text: &[String], width: usize) -> Vec<String> {
    let mut filled: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text {
        if line.is_empty() || line.starts_with(' ') {
            filled.extend(Some(line.clone()).filter(|line| !line.is_empty()));
            is_open = false;
            continue;
        }
        for word in line.split(' ') {
            match filled.last_mut() {
                Some(last) if is_open && last.chars().count() + word.chars().count() < width => {
                    *last += " ";
                    *last += word;
                }
                _ => filled.push(word.to_owned()),
            }
            is_open = true;
        }
    }
    filled
}

/// Compares a file of the repository with what it should be, or writes it.
fn same(file: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(file);
    if env::var_os("BLESS").is_some() {
        fs::write(&file, text).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    let file = file.display();
    assert!(
        found == text,
        "{file} is not what the schema says: write it with BLESS=1"
    );
}

#[test]
fn the_sample_is_what_the_schema_says() {
    same("baton.toml", &sample::sample());
}

#[test]
fn the_manual_page_is_what_the_schema_says() {
    same("packaging/man/baton.toml.5", &manual::manual());
}
