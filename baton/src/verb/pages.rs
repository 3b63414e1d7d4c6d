//! Manual pages say what the verbs are: every option, with its default, and no other; and every counter.

use std::{collections::BTreeSet, fs, path::Path};

use baton_redsocks::front::Counters;
use clap::{Command, CommandFactory as _};

use crate::Cli;

const PAGES: [(&str, &str); 4] = [
    ("redsocks", "baton-redsocks.1"),
    ("redirector", "baton-redirector.8"),
    ("client-agent", "baton-client-agent.8"),
    ("eop", "baton-eop.8"),
];

/// As a reader sees it: a hyphen that is to be typed is written `\-`.
fn page(file: &str) -> String {
    let pages = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/man"));
    let text = fs::read_to_string(pages.join(file)).expect(file);
    text.replace("\\-", "-")
}

/// A page's section of this name.
fn section<'a>(page: &'a str, name: &str) -> &'a str {
    let (_, after) = page.split_once(&format!("\n.SH {name}\n")).expect(name);
    after.split("\n.SH ").next().unwrap_or(after)
}

/// What the paragraphs of a section are about, and what they say.
fn paragraphs(section: &str) -> impl Iterator<Item = (BTreeSet<String>, &str)> {
    section.split(".TP\n").skip(1).map(|paragraph| {
        let (tag, text) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
        let is_name = |word: &&str| word.starts_with("--") || word.contains('_') || word.len() > 2;
        let words = tag.split([' ', ',', '"']).skip(1).filter(is_name);
        (words.map(str::to_owned).collect(), text)
    })
}

/// Options of a verb and of those below it, with their defaults.
fn options(verb: &Command) -> Vec<(String, Option<String>)> {
    let own = verb
        .get_arguments()
        .filter(|argument| !argument.is_hide_set());
    let own = own.filter_map(|argument| {
        let name = argument.get_long().filter(|name| *name != "help")?;
        let default = argument.get_default_values().first();
        let takes = argument.get_action().takes_values();
        let default = default
            .filter(|_| takes)
            .and_then(|default| default.to_str());
        Some((format!("--{name}"), default.map(str::to_owned)))
    });
    own.chain(verb.get_subcommands().flat_map(options))
        .collect()
}

#[test]
fn pages_have_the_options_that_there_are() {
    let cli = Cli::command();
    for (name, file) in PAGES {
        let verb = cli.find_subcommand(name).expect(name);
        let (page, options) = (page(file), options(verb));
        let described: Vec<_> = paragraphs(section(&page, "OPTIONS")).collect();
        let names: BTreeSet<String> = (described.iter())
            .filter_map(|(names, _)| names.iter().find(|name| name.starts_with("--")).cloned())
            .collect();
        let known: BTreeSet<String> = options.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(names, known, "{file}");
        for (option, default) in options {
            let (_, text) = described
                .iter()
                .find(|(names, _)| names.contains(&option))
                .expect(file);
            let default = default.unwrap_or_default();
            assert!(
                text.contains(&default),
                "{file}: {option} is {default} by default"
            );
        }
        for below in verb.get_subcommands() {
            let below = below.get_name();
            assert!(
                page.contains(&format!("\n.TP\n.B {below}\n")),
                "{file} says nothing of {below}"
            );
        }
    }
}

#[test]
fn pages_have_the_counters_that_there_are() {
    // The last name of each is that of their number.
    let lower = |names: &[(&str, u32)]| -> BTreeSet<String> {
        let names = names.split_last().map_or(&[][..], |(_, counters)| counters);
        names.iter().map(|(name, _)| name.to_lowercase()).collect()
    };
    let front = Counters::default().all().map(|(name, _)| name.to_owned());
    let known = [
        ("baton-redirector.8", front.into()),
        (
            "baton-client-agent.8",
            lower(baton_abi::CLIENT_COUNTER_NAMES),
        ),
        ("baton-eop.8", lower(baton_abi::EOP_COUNTER_NAMES)),
    ];
    for (file, known) in known {
        let page = page(file);
        let described = paragraphs(section(&page, "COUNTERS")).flat_map(|(names, _)| names);
        assert_eq!(described.collect::<BTreeSet<String>>(), known, "{file}");
    }
}
