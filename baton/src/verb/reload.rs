//! `baton reload`: the running node reads its configuration again.

use std::process::ExitCode;

use anyhow::{Result, bail};

use super::ConfigFile;
use baton_node::control::{Request, Response, ask};

/// Says what changed, or why nothing did.
pub fn run(file: &ConfigFile) -> Result<ExitCode> {
    match ask(&file.config, &Request::Reload)? {
        Response::Done { message } => {
            println!("{message}");
            Ok(ExitCode::SUCCESS)
        }
        Response::Failed { message } => bail!("{message}"),
        Response::Status(_) | Response::Migration(_) => {
            bail!(
                "the node's answer does not match the request: does its daemon run another version?"
            )
        }
    }
}
