//! Reads files of golden vectors, whose form `lccp.txt` describes. The tests of every crate with such a file include
//! this module.

#![allow(dead_code, reason = "no test reads every kind of field")]

use std::{fmt::Debug, str::FromStr};

use baton_wire::{Clock, LccpKey, NodePair};

/// Returns all records of one kind. There must be at least `at_least` of them, so that a slip in the file or in
/// reading it cannot leave a test without anything to check.
pub fn vectors(text: &str, kind: &str, at_least: usize) -> Vec<Vector> {
    let found: Vec<_> = (text.split("\n\n"))
        .filter_map(|record| Vector::parse(record, kind))
        .collect();
    assert!(
        found.len() >= at_least,
        "{} {kind} vectors, fewer than {at_least}",
        found.len()
    );
    found
}

pub struct Vector {
    pub name: String,
    fields: Vec<(String, String)>,
}

impl Vector {
    fn parse(record: &str, kind: &str) -> Option<Self> {
        let mut lines = record
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty());
        let split = |line: &str| {
            let (name, value) = line
                .split_once(' ')
                .unwrap_or_else(|| panic!("no value: {line}"));
            (name.to_owned(), value.to_owned())
        };
        let (found, name) = split(lines.next()?);
        (found == kind).then(|| Self {
            name,
            fields: lines.map(split).collect(),
        })
    }

    pub fn fields(&self, name: &str) -> impl Iterator<Item = &str> {
        self.fields
            .iter()
            .filter(move |(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn optional(&self, name: &str) -> Option<&str> {
        self.fields(name).next()
    }

    pub fn field(&self, name: &str) -> &str {
        self.optional(name)
            .unwrap_or_else(|| panic!("{} has no field {name}", self.name))
    }

    pub fn number<T: FromStr<Err: Debug>>(&self, name: &str) -> T {
        self.field(name).parse().unwrap()
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        unhex(self.field(name))
    }

    pub fn packet(&self) -> Vec<u8> {
        self.optional("packet").map(unhex).unwrap_or_default()
    }

    pub fn clock(&self, name: &str) -> Clock {
        Clock::from_nanos(self.number(name))
    }

    /// Both words of a key.
    pub fn key(&self, name: &str) -> [u64; 2] {
        let (k0, k1) = self.field(name).split_once(' ').unwrap();
        [k0, k1].map(|word| u64::from_str_radix(word, 16).unwrap())
    }

    pub fn lccp_key(&self) -> LccpKey {
        LccpKey::from_words(self.key("key"))
    }

    pub fn pair(&self) -> NodePair {
        NodePair {
            from: self.number("from"),
            to: self.number("to"),
        }
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn unhex(text: &str) -> Vec<u8> {
    if text == "-" {
        return Vec::new();
    }
    assert!(text.len().is_multiple_of(2), "half a byte: {text}");
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}
