//! What the documents tell people to type exists.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The documents that are checked besides the pages in `docs/`.
const DOCUMENTS: [&str; 4] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "labs/README.md",
];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The paths of all documents that are checked: `DOCUMENTS`, and every page in `docs/`.
fn documents() -> Vec<PathBuf> {
    let mut documents = Vec::from(DOCUMENTS.map(|name| root().join(name)));
    let entries = fs::read_dir(root().join("docs")).unwrap();
    let pages = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    documents.extend(pages);
    assert!(
        documents.len() > DOCUMENTS.len(),
        "there are no pages in docs/"
    );
    documents
}

/// Everything in code: fenced lines without their comments, and spans between backquotes.
fn code() -> Vec<String> {
    let mut code = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(document).unwrap();
        let mut fenced = false;
        for line in text.lines() {
            if line.starts_with("```") {
                fenced = !fenced;
            } else if fenced {
                code.push(line.split(" #").next().unwrap_or(line).trim().to_owned());
            } else {
                code.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
            }
        }
    }
    code
}

/// The words that follow `program` wherever it is what a piece of code begins with.
fn arguments(program: &str) -> BTreeSet<Vec<String>> {
    code()
        .iter()
        .filter_map(|code| code.strip_prefix(program)?.strip_prefix(' '))
        .map(|rest| rest.split_whitespace().map(str::to_owned).collect())
        .collect()
}

#[test]
fn every_make_target_exists() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let named = arguments("make");
    assert!(named.len() >= 2, "the documents name no targets");
    for target in named.iter().map(|words| &words[0]) {
        assert!(
            makefile.contains(&format!("\n{target}: ")),
            "the Makefile has no target {target}"
        );
    }
}

/// Neither a flag nor the name of a host or a file.
fn is_verb(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

#[test]
fn every_verb_and_flag_exists() {
    let named = arguments("baton");
    assert!(named.len() >= 5, "the documents name no verbs");
    for words in named {
        let own = words.iter().take_while(|word| *word != "--");
        // `lab fault HOST FAULT` is one with a host's name inside.
        let (places, is_fault) = match words[0].as_str() {
            "lab" if words.get(1).is_some_and(|verb| verb == "fault") => (4, true),
            "lab" => (2, false),
            _ => (1, false),
        };
        let verbs = (own.clone().enumerate())
            .take_while(|(place, word)| is_fault && *place == 2 || is_verb(word))
            .map(|(_, word)| word)
            .take(places);
        let help = Command::new(env!("CARGO_BIN_EXE_baton"))
            .args(verbs)
            .arg("--help")
            .output()
            .unwrap();
        assert!(help.status.success(), "baton {words:?}: no such verb");
        let help = String::from_utf8(help.stdout).unwrap();
        for flag in own.map(|word| word.trim_matches(['[', ']'])) {
            assert!(
                !flag.starts_with("--") || help.contains(flag),
                "baton {words:?}: no such flag"
            );
        }
    }
}

#[test]
fn every_file_named_exists() {
    let is_path = |word: &&str| {
        word.contains('/')
            && [
                "bpf/",
                "crates/",
                "labs/",
                "tests/",
                "bench/",
                "fuzz/",
                "baton/",
                "docs/",
                "packaging/",
            ]
            .iter()
            .any(|folder| word.starts_with(folder))
    };
    for code in code() {
        for path in code.split_whitespace().filter(is_path) {
            let path = path.trim_end_matches([',', '.', ')']);
            assert!(
                path.contains('*') || root().join(path).exists(),
                "{path} is named in a document but is not there"
            );
        }
    }
}

#[test]
fn every_file_linked_exists() {
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let links = (text.split("](").skip(1)).filter_map(|rest| Some(rest.split_once(')')?.0));
        for link in links.filter(|link| !link.contains("://")) {
            // What is behind a # is a heading; a link without a path leads to one of the same document.
            let path = link.split('#').next().unwrap_or(link);
            assert!(
                path.is_empty() || document.with_file_name(path).exists(),
                "{} links to {link}, which is not there",
                document.display()
            );
        }
    }
}
