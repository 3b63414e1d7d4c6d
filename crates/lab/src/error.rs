use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of this crate. Its text says what went wrong, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The lab file is not TOML, or a value in it does not fit its key. The error's text has the line.
    #[error("the lab file: {0}")]
    Syntax(#[from] toml::de::Error),

    /// The lab file contradicts itself.
    #[error("the lab file, line {line}: {what}")]
    LabFile {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong and what to write instead.
        what: String,
    },

    /// Nodes would refuse the baton.toml that is made from the lab file.
    #[error("the lab file's [config], together with its hosts:{}", list(.0))]
    Config(Vec<String>),

    /// This machine lacks something the lab needs; nothing was made.
    #[error("this machine cannot raise the lab:{}", list(.0))]
    CannotRun(Vec<String>),

    /// A program of the system failed.
    #[error("`{command}` failed ({status}): {stderr}")]
    Tool {
        /// The command line.
        command: String,
        /// Exit status or signal, in words.
        status: String,
        /// The text that the program wrote to standard error.
        stderr: String,
    },

    /// A program of the system is not there.
    #[error("`{program}` is not installed: {hint}")]
    NotInstalled {
        /// The program's name.
        program: String,
        /// How to install the program.
        hint: String,
    },

    /// The host has no clock of its own. Its programs see the machine's time, which the lab must not set.
    #[error(
        "{0} has no clock of its own: write `own_clock = true` under its [[host]] in the lab file"
    )]
    NoOwnClock(String),

    /// The operating system refused.
    #[error("cannot {what}: {cause}")]
    Io {
        /// The operation that failed, with its path; it completes "cannot …".
        what: String,
        /// The reason.
        cause: std::io::Error,
    },

    /// A namespace of the name that the lab needs exists, and the lab did not make it.
    #[error(
        "the namespace {0} exists already and was not made by this lab, so it is left alone: \
         remove it (ip netns del {0}) or give the lab another name"
    )]
    Foreign(String),

    /// The state file of a lab cannot be read.
    #[error("{path} is not a lab's state: {why}; if no lab runs, remove {path}")]
    State {
        /// The state file.
        path: PathBuf,
        /// What the parser said.
        why: String,
    },

    /// No lab of this name is up.
    #[error("the lab {0} is not up: raise it with `baton lab up FILE`")]
    NotUp(String),

    /// A verb that needs a lab found none.
    #[error("no lab is up: raise one with `baton lab up FILE`")]
    NoLab,

    /// A verb without a lab's name found several.
    #[error("several labs are up ({}): say which with --lab NAME", .0.join(", "))]
    SeveralLabs(Vec<String>),

    /// The lab has no host of this name.
    #[error("the lab {lab} has no host {host}: it has {}", .known.join(", "))]
    NoSuchHost {
        /// The lab.
        lab: String,
        /// The name that was asked for.
        host: String,
        /// The names there are.
        known: Vec<String>,
    },

    /// A host with several interfaces cannot lose its power: only first interfaces can be made anew.
    #[error("{0} has several interfaces, and cannot be halted or rebooted: cut its link instead")]
    HasPorts(String),

    /// The host has no server or program of this name.
    #[error("nothing called {thing} runs on {host}: there is {}", .known.join(", "))]
    NoSuchThing {
        /// The host.
        host: String,
        /// The name that was asked for.
        thing: String,
        /// The names there are.
        known: Vec<String>,
    },

    /// A server or program that was started did not become ready.
    #[error("{thing} on {host} is not ready after {waited:?}: {why}{log}")]
    NotReady {
        /// The host.
        host: String,
        /// The server or program that was started.
        thing: String,
        /// The time that was waited.
        waited: Duration,
        /// The last failure seen.
        why: String,
        /// The end of its log. The error keeps it, because the log is removed when the lab is taken down.
        log: Box<LogTail>,
    },

    /// A generated file does not have the bytes that it must have.
    #[error("{path} does not have the expected content: {why}; remove it and try again")]
    Files {
        /// The file.
        path: PathBuf,
        /// What `sha256sum` said.
        why: String,
    },

    /// An error, and the errors that followed while what had been made was taken down.
    #[error("{first}\nand while taking down what had been made:{}", list(.then))]
    AndThen {
        /// The cause.
        first: Box<Error>,
        /// The consequences.
        then: Vec<Error>,
    },

    /// Some things could not be undone. A teardown goes on past errors; these are all of them.
    #[error("the lab {lab} is not completely down:{}", list(.errors))]
    Down {
        /// The lab.
        lab: String,
        /// Each thing that could not be undone.
        errors: Vec<Error>,
    },
}

/// Adds to an error of the operating system what was tried.
pub(crate) trait Doing<T> {
    /// Turns an error into [`Error::Io`]. `what` completes "cannot …".
    fn doing(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<std::io::Error>> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|cause| Error::Io {
            what: what(),
            cause: cause.into(),
        })
    }
}

/// The last lines of a log, few enough to fit on a screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogTail {
    /// The path of the log, which may have been removed.
    pub path: PathBuf,
    /// The text, at most 20 lines.
    pub text: String,
}

impl LogTail {
    pub(crate) fn of(path: &Path) -> LogTail {
        let text = std::fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(20)..].join("\n");
        LogTail {
            path: path.to_owned(),
            text: last,
        }
    }
}

impl fmt::Display for LogTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        if self.text.is_empty() {
            write!(f, "\nits log, {path}, is empty")
        } else {
            write!(f, "\nthe end of its log, {path}:\n{}", self.text)
        }
    }
}

fn list<T: std::fmt::Display>(items: &[T]) -> String {
    items.iter().fold(String::new(), |mut text, item| {
        let _ = write!(text, "\n- {item}"); // a String never fails to grow
        text
    })
}
