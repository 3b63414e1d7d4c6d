//! The parser returns for any text, and every finding points into the text.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use baton_config::{Error, HostPattern, PathPrefix};
use proptest::prelude::*;

/// Parses a text, and checks what must hold for every finding.
fn parse(text: &str) -> Result<(), TestCaseError> {
    let findings = match common::parse(text) {
        Ok(loaded) => loaded.warnings,
        Err(Error::Invalid(findings)) => {
            prop_assert!(!findings.is_empty(), "wrong without a finding");
            findings
        }
        Err(other) => return Err(TestCaseError::fail(other.to_string())),
    };
    for finding in findings {
        prop_assert!(!finding.problem.what.is_empty() && !finding.problem.remedy.is_empty());
        prop_assert!(!finding.to_string().trim_end().ends_with("help:"));
        if let Some(place) = finding.place {
            let line = text.split('\n').nth(place.line - 1);
            let width = line.map(|line| line.chars().count());
            prop_assert!(
                width.is_some_and(|width| place.column <= width + 1),
                "{finding}"
            );
        }
    }
    Ok(())
}

/// One change to a good file: the place, the number of bytes that are cut out, and the text that replaces them.
fn mutation() -> impl Strategy<Value = (usize, usize, String)> {
    let pieces = prop_oneof![
        Just(String::new()),
        Just("\n".to_owned()),
        Just("\"".to_owned()),
        Just("[".to_owned()),
        Just("]]".to_owned()),
        Just(" = ".to_owned()),
        Just("-1".to_owned()),
        Just("99999999999999999999999999".to_owned()),
        Just("1979-05-27T07:32:00Z".to_owned()),
        Just("{ a = [[], {}] }".to_owned()),
        Just("[[node]]\n".to_owned()),
        Just("[[service]]\n".to_owned()),
        Just("[[service.pool]]\n".to_owned()),
        Just("[[service.route]]\n".to_owned()),
        Just("[service.route]\n".to_owned()),
        Just("*.".to_owned()),
        Just("ack".to_owned()),
        Just("::1".to_owned()),
        "[a-z_\"=\\[\\]{}.,0-9 \n]{0,12}",
        "\\PC{0,4}",
    ];
    (0..common::routed().len(), 0..60usize, pieces)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn arbitrary_text(text in "(\\PC|\n){0,300}") {
        parse(&text)?;
    }

    #[test]
    fn arbitrary_tables(text in "(\\[{1,2}(cluster|node|service|service\\.(health|pool|route)|cs|local)\\]{1,2}\n|(name|address|roles|port|key|nodes|weight|health|kind|hello|pool|route|host|path) = (1|\"a\"|\"10.0.0.1\"|\\[\\]|\\[\"ds\"\\]|\\[\"cs\"\\]|\\{\\}|1\\.5|true)\n){0,20}") {
        parse(&text)?;
    }

    /// A host is displayed in lower case and read again as the same host. A path keeps its text.
    #[test]
    fn hosts_and_paths(text in "(\\*\\.|/)?([a-cA-C_-]{0,20}[.:/*%?]?){0,4}(\\PC){0,2}") {
        if let Ok(host) = text.parse::<HostPattern>() {
            let written = host.to_string();
            prop_assert!(written.len() <= 63 && written == text.to_ascii_lowercase());
            prop_assert_eq!(written.parse::<HostPattern>(), Ok(host));
        }
        if let Ok(path) = text.parse::<PathPrefix>() {
            prop_assert!(text.starts_with('/') && text.len() <= 120);
            prop_assert_eq!(path.to_string(), text);
        }
    }

    #[test]
    fn mutations_of_the_sample(mutations in proptest::collection::vec(mutation(), 1..5)) {
        let mut text = common::routed();
        for (at, length, piece) in mutations {
            let start = text.floor_char_boundary(at);
            let end = text.floor_char_boundary(at + length).max(start);
            text.replace_range(start..end, &piece);
        }
        parse(&text)?;
    }
}
