//! Collects findings while the file is being parsed, so that all of them are reported at once.

use std::ops::Range;
use std::path::Path;

use crate::reading::problem::{Diagnostic, Place, Problem};

/// The byte range of the text that a finding is about; `None` for the file as a whole.
pub(crate) type Span = Option<Range<usize>>;

/// The findings so far.
pub(crate) struct Report<'a> {
    file: &'a Path,
    text: &'a str,
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    is_torn: bool,
}

impl<'a> Report<'a> {
    pub(crate) fn new(file: &'a Path, text: &'a str) -> Self {
        Self {
            file,
            text,
            errors: Vec::new(),
            warnings: Vec::new(),
            is_torn: false,
        }
    }

    /// Reports what is wrong at a place, and what to do about it.
    pub(crate) fn error(
        &mut self,
        at: impl Into<Span>,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.problem(at, Problem::new(what, remedy));
    }

    /// The same as [`Report::error`], for a problem that a value has of its own.
    pub(crate) fn problem(&mut self, at: impl Into<Span>, problem: Problem) {
        let finding = self.finding(at.into(), problem);
        self.errors.push(finding);
    }

    /// Reports what is legal, but probably not meant.
    pub(crate) fn warning(
        &mut self,
        at: impl Into<Span>,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let finding = self.finding(at.into(), Problem::new(what, remedy));
        self.warnings.push(finding);
    }

    /// Reports a table that is none, with all keys that should be in it.
    pub(crate) fn torn(&mut self, at: Range<usize>, what: String, remedy: String) {
        self.is_torn = true;
        self.error(at, what, remedy);
    }

    /// Whether the file has a table that is none. Then nobody knows what is missing elsewhere because of it.
    pub(crate) fn is_torn(&self) -> bool {
        self.is_torn
    }

    /// The value of a good result. The problem of a bad one is reported.
    pub(crate) fn good<V>(&mut self, at: Range<usize>, result: Result<V, Problem>) -> Option<V> {
        match result {
            Ok(value) => Some(value),
            Err(problem) => {
                self.problem(at, problem);
                None
            }
        }
    }

    /// The line, counted from 1, that a span begins in.
    pub(crate) fn line(&self, at: &Range<usize>) -> usize {
        place(self.text, at.start).line
    }

    /// The errors and the warnings, each in the order of the file. Findings without a place come last.
    pub(crate) fn into_findings(self) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        (in_file_order(self.errors), in_file_order(self.warnings))
    }

    fn finding(&self, at: Span, problem: Problem) -> Diagnostic {
        Diagnostic {
            file: self.file.to_owned(),
            place: at.map(|span| place(self.text, span.start)),
            problem,
        }
    }
}

fn in_file_order(mut findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    findings.sort_by_key(|finding| (finding.place.is_none(), finding.place));
    findings
}

/// The place of a byte offset. An offset past the end or inside a character is moved back.
fn place(text: &str, offset: usize) -> Place {
    let before = &text[..text.floor_char_boundary(offset)];
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    Place { line, column }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_from_one_in_characters() {
        assert_eq!(place("", 0), Place { line: 1, column: 1 });
        assert_eq!(place("äb\nc", 2), Place { line: 1, column: 2 });
        assert_eq!(place("äb\nc", 1), Place { line: 1, column: 1 });
        assert_eq!(place("ab\nc", 3), Place { line: 2, column: 1 });
        assert_eq!(place("ab\n", 99), Place { line: 2, column: 1 });
    }
}
