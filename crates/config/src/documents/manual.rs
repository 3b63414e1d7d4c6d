//! The manual page baton.toml(5).

use std::fmt::Write as _;

use super::{lines, parts};
use crate::reading::document::File;
use crate::reading::schema::{Key, Table as _};

const HEAD: &str = r#".TH BATON.TOML 5 2026-11-22 baton "File Formats"
.SH NAME
baton.toml \- configuration of a baton cluster
.SH DESCRIPTION
"#;

const FOOT: &str = r".SH FILES
/etc/baton/baton.toml
.SH SEE ALSO
.BR baton\-client\-agent (8),
.BR baton\-redirector (8)
";

/// The manual page.
pub(super) fn manual() -> String {
    let mut page = HEAD.to_owned() + &roff(File::TEXT);
    for part in parts() {
        writeln!(page, ".SH {}", part.header).unwrap();
        page += &roff(part.text);
        let is_bare = |key: &Key| key.text.is_empty() && fact(key).is_empty();
        let keys = part.keys.iter().filter(|key| !is_bare(key));
        // A key without a text shares that of the key before it, unless it is required and its name says enough.
        let mut text: &[&str] = &[];
        for key in keys {
            let shares = key.text.is_empty() && key.required.is_none();
            if !shares {
                page += &roff(text);
                text = key.text;
            }
            let fact = escaped(&fact(key)).replace('"', "\\(dq");
            let tag = if shares { ".TQ" } else { ".TP" };
            write!(page, "{tag}\n.BR {} \"{fact}\"\n", key.name).unwrap();
        }
        page += &roff(text);
    }
    page + FOOT
}

/// What the page says behind the name of a key.
fn fact(key: &Key) -> String {
    let example = key
        .sample
        .or(key.example)
        .filter(|example| *example != "\"…\"");
    match (key.required, key.default_shown(), example) {
        (Some(_), ..) => " (required)".to_owned(),
        (None, Some(default), _) => format!(" (default {default})"),
        (None, None, Some(example)) => format!(" (for example {example})"),
        (None, None, None) => String::new(),
    }
}

/// A text in the language of manual pages, in which `.TP` begins an item of a list and `.br` a line of its own.
fn roff(text: &[&str]) -> String {
    let mut page = String::new();
    let mut is_list = false;
    for line in lines(text) {
        let item = line
            .strip_prefix("  \"")
            .and_then(|item| item.split_once("\" "));
        let text = escaped(line.trim());
        page += &match item {
            Some((word, text)) => {
                let begin = if is_list { "" } else { ".RS\n" };
                is_list = true;
                format!(
                    "{begin}.TP\n.B \\(dq{}\\(dq\n{}\n",
                    escaped(word),
                    escaped(text.trim())
                )
            }
            None if is_list && line.starts_with(' ') => format!("{text}\n"),
            None if is_list => {
                is_list = false;
                format!(".RE\n.IP\n{text}\n")
            }
            None if line.is_empty() => ".br\n".to_owned(),
            None if line.starts_with(' ') => format!(".br\n{text}\n.br\n"),
            None if page.is_empty() => capital(&text) + "\n",
            None => format!("{text}\n"),
        };
    }
    page += if is_list { ".RE\n" } else { "" };
    let marked = page.split('`').enumerate().map(|(i, part)| match i % 2 {
        0 => part.to_owned(),
        _ => format!("\\fB{part}\\fP"),
    });
    marked.collect()
}

/// The text with a capital at its beginning.
fn capital(text: &str) -> String {
    let mut rest = text.chars();
    let first: Option<String> = rest.next().map(|first| first.to_uppercase().collect());
    first.unwrap_or_default() + rest.as_str()
}

/// A text without the characters that mean something else in manual pages.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}
