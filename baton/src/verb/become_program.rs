//! Becomes another program, for verbs that only prepare its surroundings.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

/// Exit statuses of env(1) and of shells for a command that could not begin.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

/// Replaces this process by a program. Returns only if that fails, with the exit status that says so.
pub fn become_program(command: &[OsString]) -> Result<ExitCode> {
    let (program, arguments) = command.split_first().context("no program is named")?;
    let error = Command::new(program).args(arguments).exec();
    eprintln!("baton: cannot run {}: {error}", program.to_string_lossy());
    Ok(ExitCode::from(match error.kind() {
        ErrorKind::NotFound => NOT_FOUND,
        _ => NOT_RUN,
    }))
}
