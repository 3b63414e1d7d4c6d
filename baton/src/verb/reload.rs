//! `baton reload`: the running node reads its configuration again.

use std::process::ExitCode;

use anyhow::Result;

use super::ConfigFile;
use baton_node::control::{Request, Response, ask};

/// Says what changed, or why nothing did.
pub fn run(file: &ConfigFile) -> Result<ExitCode> {
    match ask(&file.config, &Request::Reload)? {
        Response::Done { message } => {
            println!("{message}");
            Ok(ExitCode::SUCCESS)
        }
        other => Err(other.unexpected()),
    }
}
