//! Every file in tests/bad against the findings written in the comments on top of it:
//! `# error: line:column: what` and `# help: remedy`, in order and complete.
//!
//! `BLESS=1 cargo test -p baton-config --test bad` writes the comments anew; read the difference.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::Path;
use std::{env, fs};

use baton_config::{Diagnostic, Error};

#[test]
fn each_bad_file_is_told_what_is_wrong_with_it() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 40, "only {} bad files", files.len());
    let mut wrong = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        if env::var_os("BLESS").is_some() {
            fs::write(file, bless(&text)).unwrap();
            continue;
        }
        let (expected, found) = (comments(&text), findings(&text));
        if expected != found || found.is_empty() {
            wrong.push(format!(
                "{}\nexpected:\n{expected}found:\n{found}",
                file.display()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn findings(text: &str) -> String {
    match common::parse(text) {
        Ok(_) => String::new(),
        Err(Error::Invalid(found)) => found.iter().map(comment).collect(),
        Err(other) => panic!("{other}"),
    }
}

fn comment(finding: &Diagnostic) -> String {
    let place = finding
        .place
        .map_or(String::new(), |at| format!("{}:{}: ", at.line, at.column));
    format!(
        "# error: {place}{}\n# help: {}\n",
        finding.problem.what, finding.problem.remedy
    )
}

fn comments(text: &str) -> String {
    let expected = text.lines().take_while(|line| is_expectation(line));
    expected.map(|line| format!("{line}\n")).collect()
}

fn is_expectation(line: &str) -> bool {
    line.starts_with("# error: ") || line.starts_with("# help: ")
}

/// Writes the findings on top of the text. The comments move the lines that they name, so this is done three times,
/// after which the line numbers are right.
fn bless(text: &str) -> String {
    let mut blessed = text.to_owned();
    for _ in 0..3 {
        let body: String = blessed
            .split_inclusive('\n')
            .skip_while(|line| is_expectation(line))
            .collect();
        blessed = findings(&blessed) + &body;
    }
    blessed
}
