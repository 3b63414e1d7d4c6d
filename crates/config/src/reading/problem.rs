//! The errors of this crate. Each says what is wrong, where, and what to do.

use std::fmt;
use std::path::PathBuf;

/// The reason why there is no [`crate::Config`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration file itself could not be read.
    #[error("cannot read the configuration {}: {cause}\n  help: check the path and its permissions, or name another file with --config", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// The file was read and is wrong. Has every finding, in the order of the file.
    #[error("{}", Findings(.0))]
    Invalid(Vec<Diagnostic>),
    /// No `[[node]]` has the name of this machine.
    #[error(
        "this machine is called \"{name}\" and no [[node]] has that name (there are: {known})\n  \
         help: set name under [local], or add a [[node]] with this name"
    )]
    NotInCluster {
        /// The name that was looked for.
        name: String,
        /// The names that exist, separated by commas.
        known: String,
    },
    /// This machine was given the keys of another node.
    #[error(
        "this machine is {name}, and the keys that it was given are those of {owner}\n  \
         help: give it its own, made where the secret is: baton key {name}"
    )]
    KeysOfAnother {
        /// This node.
        name: String,
        /// The node whose keys these are.
        owner: String,
    },
    /// A single value that is not what its type needs.
    #[error(transparent)]
    Value(#[from] Problem),
}

/// One wrong value: what is wrong with it and what to do. A [`Diagnostic`] adds the place in the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {remedy}")]
pub struct Problem {
    /// What is wrong, without a full stop.
    pub what: String,
    /// What to do about it, without a full stop.
    pub remedy: String,
}

impl Problem {
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}

/// Line and column in a file, both counted from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
}

/// One finding in a file.
///
/// It is displayed as `file:line:column: what`, then a line `  help: remedy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file as the caller named it.
    pub file: PathBuf,
    /// The place in the file; `None` if the finding is about the file as a whole.
    pub place: Option<Place>,
    /// What is wrong and what to do.
    pub problem: Problem,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some(Place { line, column }) = self.place {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " {}\n  help: {}", self.problem.what, self.problem.remedy)
    }
}

struct Findings<'a>(&'a [Diagnostic]);

impl fmt::Display for Findings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, finding) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            finding.fmt(f)?;
        }
        Ok(())
    }
}
