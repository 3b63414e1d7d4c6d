//! What every server needs to start: its command, and files below the host's directory.

use std::path::{Path, PathBuf};

use crate::error::{Doing, Result};
use crate::tool;

/// The command that starts a server, and what must be removed before.
pub(crate) struct Prepared {
    /// The full path of the program, and its arguments.
    pub words: Vec<String>,
    /// Files that a former run may have left, and that would keep the server from starting.
    pub leftovers: Vec<PathBuf>,
}

pub(super) fn make_directory(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).doing(|| format!("make {}", path.display()))
}

pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).doing(|| format!("write {}", path.display()))
}

/// The full path of a program, as the first word of a command.
pub(super) fn first_word(program: &str) -> Result<String> {
    Ok(tool::find(program)?.to_string_lossy().into_owned())
}
