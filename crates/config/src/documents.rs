//! The commented `baton.toml` and the manual page baton.toml(5), made from the schema.
//!
//! `BLESS=1 cargo test -p baton-config --lib documents` writes both files; read the difference.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use crate::reading::document::File;
use crate::reading::schema::{Key, Table};
use crate::sections::{cluster, cs, failover, forwarding, local, node};
use crate::service::{self, health, large, overflow, pool, route};

/// A table as the documents show it.
struct Part {
    header: &'static str,
    text: &'static [&'static str],
    keys: &'static [Key],
    look: Look,
}

/// How the sample shows a table.
#[derive(Clone, Copy, PartialEq)]
enum Look {
    /// Texts stand above their keys.
    Above,
    /// The same, and the whole table is a comment.
    AboveOff,
    /// Texts stand beside their keys.
    Beside,
    /// The same, and the whole table is a comment.
    BesideOff,
}

fn part<T: Table>(look: Look) -> Part {
    let (header, text, keys) = (T::HEADER, T::TEXT, T::KEYS);
    Part {
        header,
        text,
        keys,
        look,
    }
}

/// All tables in the order of the documents.
fn parts() -> [Part; 12] {
    [
        part::<cluster::Keys>(Look::Above),
        part::<local::Keys>(Look::Above),
        part::<cs::Keys>(Look::Above),
        part::<failover::Keys>(Look::AboveOff),
        part::<forwarding::Keys>(Look::AboveOff),
        part::<node::Keys>(Look::Beside),
        part::<service::Keys>(Look::Above),
        part::<overflow::Keys>(Look::BesideOff),
        part::<health::Keys>(Look::Beside),
        part::<large::Keys>(Look::BesideOff),
        part::<pool::Keys>(Look::BesideOff),
        part::<route::Keys>(Look::BesideOff),
    ]
}

/// The nodes of the sample: the keys that each of them shows, and their values if the schema does not give them.
const NODES: [&[(&str, &str)]; 3] = [
    &[
        ("name", "\"cs1\""),
        ("address", "\"192.0.2.2\""),
        ("interface", "\"eth0\""),
        ("xdp", ""),
        ("also_mac", ""),
        ("roles", "[\"cs\"]"),
    ],
    &[
        ("name", "\"ds1\""),
        ("address", "\"192.0.2.11\""),
        ("roles", "[\"ds\"]"),
        ("weight", ""),
        ("own_keys", ""),
    ],
    &[
        ("name", "\"ds2\""),
        ("address", "\"192.0.2.12\""),
        ("roles", "[\"ds\"]"),
    ],
];

impl Key {
    /// The default, unless it is an empty list or table.
    fn default_shown(&self) -> Option<&'static str> {
        self.default
            .filter(|default| !["[]", "{}"].contains(default))
    }

    /// What a reader must know besides the text: that the key is required, or a default that is not the value shown.
    fn note(&self) -> String {
        match (self.required, self.default_shown()) {
            (Some(_), _) => "required".to_owned(),
            (None, Some(default)) if self.sample.or(self.example).is_some() => {
                format!("default: {default}")
            }
            _ => String::new(),
        }
    }

    /// What the manual page says behind the name of the key.
    fn fact(&self) -> String {
        let example = self
            .sample
            .or(self.example)
            .filter(|example| *example != "\"…\"");
        match (self.required, self.default_shown(), example) {
            (Some(_), ..) => " (required)".to_owned(),
            (None, Some(default), _) => format!(" (default {default})"),
            (None, None, Some(example)) => format!(" (for example {example})"),
            (None, None, None) => String::new(),
        }
    }
}

/// The commented `baton.toml`.
fn sample() -> String {
    let mut sample = comment(File::TEXT);
    for part in parts() {
        sample += "\n";
        sample += &comment(part.text);
        if part.header != node::Keys::HEADER {
            let keys: Vec<_> = part.keys.iter().map(|key| (key, "", true)).collect();
            sample += &table(&part, &keys);
            continue;
        }
        let mut told = Vec::new();
        let nodes = NODES.map(|shown| {
            let keys = shown.iter().map(|(name, value)| {
                let key = part.keys.iter().find(|key| key.name == *name).unwrap();
                let is_first = !told.contains(name);
                told.push(*name);
                (key, *value, is_first)
            });
            table(&part, &keys.collect::<Vec<_>>())
        });
        sample += &nodes.join("\n");
    }
    sample
}

/// One table of the sample: its keys with their values, and whether each is explained.
fn table(part: &Part, keys: &[(&Key, &str, bool)]) -> String {
    let is_off = matches!(part.look, Look::AboveOff | Look::BesideOff);
    let is_beside = matches!(part.look, Look::Beside | Look::BesideOff);
    let mut table = format!("{}{}\n", if is_off { "# " } else { "" }, part.header);
    for (key, value, is_explained) in keys {
        let live = Some(*value)
            .filter(|value| !value.is_empty())
            .or(key.sample);
        let live = live.or(key.default_shown().filter(|_| key.example.is_none()));
        let Some(value) = live.or(key.example) else {
            table += &comment(key.text);
            continue;
        };
        let off = if is_off || live.is_none() { "# " } else { "" };
        let mut beside = Vec::new();
        match (*is_explained, is_beside) {
            (false, _) => {}
            (true, false) => {
                table += &comment(key.text);
                beside.extend(Some(key.note()).filter(|note| !note.is_empty()));
            }
            (true, true) => beside = fill(&explanation(key), 88),
        }
        let column = if is_off { 30 } else { 28 };
        let bare = if is_off { "#" } else { "" };
        let mut line = format!("{off}{} = {value}", key.name);
        for text in beside {
            if line.len() >= column && line.len() + 4 + text.len() <= 120 {
                writeln!(table, "{line}  # {text}").unwrap();
            } else if line.len() >= column {
                writeln!(table, "{line}\n{bare:column$}# {text}").unwrap();
            } else {
                writeln!(table, "{line:column$}# {text}").unwrap();
            }
            line = bare.to_owned();
        }
        if line != bare {
            writeln!(table, "{line}").unwrap();
        }
    }
    table
}

/// The note and the text of a key that stand beside it.
fn explanation(key: &Key) -> Vec<String> {
    let mut lines = lines(key.text);
    let note = key.note();
    match lines.first_mut() {
        None if note.is_empty() => {}
        None => lines.push(note),
        Some(_) if note.is_empty() => {}
        Some(first) if first.starts_with(char::is_lowercase) => *first = format!("{note}: {first}"),
        Some(first) => *first = format!("{note}. {first}"),
    }
    lines
}

/// The lines of a text as a comment.
fn comment(text: &[&str]) -> String {
    fill(&lines(text), 118)
        .iter()
        .map(|line| format!("# {line}\n"))
        .collect()
}

/// The lines of a comment in the schema, without the blank that each begins with.
fn lines(text: &[&str]) -> Vec<String> {
    let lines = text
        .iter()
        .map(|line| line.strip_prefix(' ').unwrap_or(line));
    lines.map(str::to_owned).collect()
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
                Some(last)
                    if is_open && last.chars().count() + 1 + word.chars().count() <= width =>
                {
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

/// The manual page.
fn manual() -> String {
    let mut page = String::from(
        ".TH BATON.TOML 5 2026-11-22 baton \"File Formats\"\n.SH NAME\nbaton.toml \\- configuration of a baton cluster\n\
         .SH DESCRIPTION\n",
    );
    page += &roff(File::TEXT);
    for part in parts() {
        writeln!(page, ".SH {}", part.header).unwrap();
        page += &roff(part.text);
        let is_bare = |key: &Key| key.text.is_empty() && key.fact().is_empty();
        let keys = part.keys.iter().filter(|key| !is_bare(key));
        // A key without a text shares that of the key before it, unless it is required and its name says enough.
        let mut text: &[&str] = &[];
        for key in keys {
            let shares = key.text.is_empty() && key.required.is_none();
            if !shares {
                page += &roff(text);
                text = key.text;
            }
            let fact = escaped(&key.fact()).replace('"', "\\(dq");
            let tag = if shares { ".TQ" } else { ".TP" };
            write!(page, "{tag}\n.BR {} \"{fact}\"\n", key.name).unwrap();
        }
        page += &roff(text);
    }
    page + ".SH FILES\n/etc/baton/baton.toml\n.SH SEE ALSO\n.BR baton\\-client\\-agent (8),\n.BR baton\\-redirector (8)\n"
}

/// A piece of a text: running text, an item of a list with its word, or a line to be typed.
enum Piece {
    Running(Vec<String>),
    Item(String, Vec<String>),
    Typed(String),
}

/// The pieces of a text. Items and lines to be typed begin with blanks, and an item goes on in lines with more blanks.
fn pieces(text: &[&str]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for line in lines(text) {
        let item = line
            .strip_prefix("  \"")
            .and_then(|item| item.split_once("\" "));
        let text = line.trim().to_owned();
        match (item, pieces.last_mut()) {
            (Some((word, text)), _) => {
                pieces.push(Piece::Item(word.to_owned(), vec![text.trim().to_owned()]));
            }
            (None, Some(Piece::Item(_, lines))) if line.starts_with(' ') => lines.push(text),
            (None, _) if line.starts_with(' ') => pieces.push(Piece::Typed(text)),
            (None, Some(Piece::Running(lines))) if !line.is_empty() => lines.push(text),
            (None, _) => pieces.push(Piece::Running(vec![text])),
        }
    }
    pieces
}

/// A text in the language of manual pages.
fn roff(text: &[&str]) -> String {
    let mut page = String::new();
    let mut is_list = false;
    for piece in pieces(text) {
        match piece {
            Piece::Running(lines) => {
                page += match (is_list, page.is_empty()) {
                    (true, _) => ".RE\n.IP\n",
                    (false, true) => "",
                    (false, false) => ".br\n",
                };
                is_list = false;
                match page.is_empty() {
                    true => page += &sentence(&running(&lines)),
                    false => page += &running(&lines),
                }
            }
            Piece::Item(word, lines) => {
                let start = if is_list { "" } else { ".RS\n" };
                is_list = true;
                write!(
                    page,
                    "{start}.TP\n.B \\(dq{}\\(dq\n{}",
                    escaped(&word),
                    running(&lines)
                )
                .unwrap();
            }
            Piece::Typed(line) => write!(page, ".br\n{}", running(&[line])).unwrap(),
        }
    }
    page + if is_list { ".RE\n" } else { "" }
}

/// Running text as sentences, with the marks of manual pages.
fn running(lines: &[String]) -> String {
    let text = escaped(fill(lines, 118).join("\n").trim());
    let marked = text.split('`').enumerate().map(|(i, part)| match i % 2 {
        0 => part.to_owned(),
        _ => format!("\\fB{part}\\fP"),
    });
    marked.collect::<String>() + "\n"
}

/// The text with a capital at its beginning.
fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    let first: Option<String> = rest.next().map(|first| first.to_uppercase().collect());
    first.unwrap_or_default() + rest.as_str()
}

/// A text without the characters that mean something else in manual pages.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    text.replace("\n.", "\n\\&.").replace("\n'", "\n\\&'")
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
    assert!(
        found == text,
        "{} is not what the schema says: write it with BLESS=1",
        file.display()
    );
}

#[test]
fn the_sample_is_what_the_schema_says() {
    same("baton.toml", &sample());
}

#[test]
fn the_manual_page_is_what_the_schema_says() {
    same("packaging/man/baton.toml.5", &manual());
}
