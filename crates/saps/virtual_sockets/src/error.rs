//! What can keep an agent from running.

use std::{io, path::PathBuf};

/// The errors of an agent. Each says what was being done and, where somebody can mend it, how.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error(transparent)]
    Dataplane(#[from] baton_dataplane::Error),
    #[error("cannot {doing}: {cause}")]
    System { doing: String, cause: io::Error },
    #[error(
        "no control groups of version 2 are mounted here: mount -t cgroup2 none /sys/fs/cgroup/unified"
    )]
    NoControlGroups,
    #[error("cannot {doing} the control group {path}: {cause}; baton needs root there")]
    Group {
        doing: &'static str,
        path: PathBuf,
        cause: io::Error,
    },
    #[error(
        "no application node runs here: the control group {0} does not exist. Start `baton node` with this configuration first"
    )]
    NoGroup(PathBuf),
}

impl Error {
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |cause| Self::System { doing, cause }
    }
}
