//! `baton status`: what the node that runs here knows.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;

use super::ConfigFile;
use baton_node::control::{Request, Response, ask};

/// Show the running node.
#[derive(Args)]
pub struct Status {
    #[command(flatten)]
    config: ConfigFile,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

impl Status {
    /// Asks the daemon through its control socket.
    pub fn run(self) -> Result<ExitCode> {
        match ask(&self.config.config, &Request::Status)? {
            Response::Status(status) if self.json => {
                println!("{}", serde_json::to_string_pretty(&status)?)
            }
            Response::Status(status) => print!("{status}"),
            Response::Failed { message } | Response::Done { message } => bail!("{message}"),
            Response::Migration(_) => bail!(
                "the node's answer does not match the request: does its daemon run another version?"
            ),
        }
        Ok(ExitCode::SUCCESS)
    }
}
