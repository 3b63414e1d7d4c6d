//! The commented `baton.toml`.

use super::{Part, fill, lines, parts};
use crate::reading::document::File;
use crate::reading::schema::{Key, Table as _};
use crate::sections::node;

/// The nodes of the sample: the keys that each of them shows, with their values where the schema gives none.
const NODES: [&str; 3] = [
    r#"name "cs1" | address "192.0.2.2" | interface "eth0" | xdp | also_mac | roles ["cs"]"#,
    r#"name "ds1" | address "192.0.2.11" | roles ["ds"] | weight | own_keys"#,
    r#"name "ds2" | address "192.0.2.12" | roles ["ds"]"#,
];

/// The longest line.
const WIDTH: usize = 120;

/// The sample.
pub(super) fn sample() -> String {
    let mut sample = comment(File::TEXT);
    for part in parts() {
        let tables = match part.header == node::Keys::HEADER {
            true => nodes(&part),
            false => {
                let keys = part.keys.iter().map(|key| entry(&part, key, "", true));
                header(&part) + &keys.collect::<String>()
            }
        };
        sample += &format!("\n{}{tables}", comment(part.text));
    }
    sample
}

/// The nodes. A key is explained where it is shown for the first time.
fn nodes(part: &Part) -> String {
    let mut told = Vec::new();
    let nodes = NODES.map(|shown| {
        let entries = shown.split(" | ").map(|shown| {
            let (name, value) = shown.split_once(' ').unwrap_or((shown, ""));
            let key = part.keys.iter().find(|key| key.name == name).unwrap();
            let is_new = !told.contains(&name);
            told.push(name);
            entry(part, key, value, is_new)
        });
        header(part) + &entries.collect::<String>()
    });
    nodes.join("\n")
}

fn header(part: &Part) -> String {
    format!("{}{}\n", if part.is_off { "# " } else { "" }, part.header)
}

/// A key with its value, and with its text if it is new. `value` is empty if the schema gives the value.
fn entry(part: &Part, key: &Key, value: &str, is_new: bool) -> String {
    let given = Some(value).filter(|value| !value.is_empty());
    let default = key.default_shown().filter(|_| key.example.is_none());
    let live = given.or(key.sample).or(default);
    let Some(value) = live.or(key.example) else {
        return comment(key.text);
    };
    let is_off = part.is_off || live.is_none();
    let line = format!("{}{} = {value}", if is_off { "# " } else { "" }, key.name);
    if !is_new {
        return line + "\n";
    }
    let (above, mut beside) = match part.is_beside {
        true => (String::new(), lines(key.text)),
        false => (comment(key.text), Vec::new()),
    };
    let note = note(key);
    match beside.first_mut() {
        _ if note.is_empty() => {}
        None => beside.push(note),
        Some(first) if first.starts_with(char::is_lowercase) => *first = format!("{note}: {first}"),
        Some(first) => *first = format!("{note}. {first}"),
    }
    above + &with_text(&line, &beside, part.is_off)
}

/// The line of a key with a text beside it, or below if there is no room.
fn with_text(line: &str, text: &[String], is_off: bool) -> String {
    let (column, bare) = if is_off { (30, "#") } else { (28, "") };
    let text = fill(text, WIDTH - column - 2);
    let fits = |first: &String| line.len().max(column - 2) + 4 + first.len() <= WIDTH;
    let (mut shown, mut left) = match text.first().is_some_and(fits) {
        true => (String::new(), line),
        false => (format!("{line}\n"), bare),
    };
    for text in text {
        let gap = column.saturating_sub(left.len()).max(2);
        shown += &format!("{left}{:gap$}# {text}\n", "");
        left = bare;
    }
    shown
}

/// What a reader must know besides the text: that the key is required, or a default that is not the value shown.
fn note(key: &Key) -> String {
    let is_other = key.sample.or(key.example).is_some();
    match (key.required, key.default_shown()) {
        (Some(_), _) => "required".to_owned(),
        (None, Some(default)) if is_other => format!("default: {default}"),
        _ => String::new(),
    }
}

/// A text as a comment.
fn comment(text: &[&str]) -> String {
    let filled = fill(&lines(text), WIDTH - 2);
    filled.iter().map(|line| format!("# {line}\n")).collect()
}
