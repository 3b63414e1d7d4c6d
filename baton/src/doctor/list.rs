//! Shows findings to people: as an aligned list, with the remedy below each finding that is not good.

use std::fmt;

use super::finding::{Finding, Verdict};

/// All findings of an examination.
pub struct List<'a>(pub &'a [Finding]);

/// The number of columns that a remedy may fill.
const WIDTH: usize = 100;
/// The columns before a remedy.
const INDENT: &str = "          ";

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|finding| finding.name().len()).max();
        for finding in self.0 {
            let mut lines = finding.found().lines();
            let (verdict, name) = (word(finding.verdict()), finding.name());
            let first = lines.next().unwrap_or_default();
            writeln!(
                f,
                "{verdict:<8}{name:<width$}  {first}",
                width = width.unwrap_or(0)
            )?;
            for line in lines {
                writeln!(f, "{INDENT}{line}")?;
            }
            for line in wrapped(finding.remedy().unwrap_or_default(), WIDTH - INDENT.len()) {
                writeln!(f, "{INDENT}{line}")?;
            }
        }
        let count = |verdict| {
            self.0
                .iter()
                .filter(|finding| finding.verdict() == verdict)
                .count()
        };
        let (good, advice, bad) = (
            count(Verdict::Good),
            count(Verdict::Advice),
            count(Verdict::Bad),
        );
        writeln!(
            f,
            "\n{} checks: {good} good, {advice} advice, {bad} bad",
            self.0.len()
        )
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Good => "good",
        Verdict::Advice => "advice",
        Verdict::Bad => "BAD",
    }
}

/// Wraps a text into lines of at most `width` characters, unless a word is longer.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_with_remedies_below() {
        let findings = [
            Finding::good("kernel", "6.18"),
            Finding::bad("tcp_syncookies", "0", "Set it to 1."),
            Finding::advice("programs", "no\nlog", "Read."),
        ];
        let expected = "good    kernel          6.18\n\
                        BAD     tcp_syncookies  0\n\
                        \x20         Set it to 1.\n\
                        advice  programs        no\n\
                        \x20         log\n\
                        \x20         Read.\n\
                        \n3 checks: 1 good, 1 advice, 1 bad\n";
        assert_eq!(List(&findings).to_string(), expected);
        assert_eq!(
            List(&[]).to_string(),
            "\n0 checks: 0 good, 0 advice, 0 bad\n"
        );
    }

    #[test]
    fn words_are_never_cut() {
        assert_eq!(wrapped("ab cd efghijk l", 5), ["ab cd", "efghijk", "l"]);
        assert!(wrapped("  ", 5).is_empty());
    }
}
