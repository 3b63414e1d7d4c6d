//! `baton status`: what the node that runs here knows.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::ConfigFile;
use baton_node::control;

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
        let status = control::status(&self.config.config)?;
        if self.json {
            println!("{}", serde_json::to_string_pretty(&status)?);
        } else {
            print!("{status}");
        }
        Ok(ExitCode::SUCCESS)
    }
}
