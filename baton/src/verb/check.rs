//! `baton check`: what is wrong with a configuration, where, and what to do.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use baton_config::{Config, Error};
use clap::Args;

use baton_node::check_routes;

/// Validate a configuration.
#[derive(Args)]
pub struct Check {
    /// The configuration file
    file: PathBuf,
}

impl Check {
    /// Prints findings; fails if one of them keeps the cluster from running.
    pub fn run(self) -> Result<ExitCode> {
        match Config::read(&self.file) {
            Ok(loaded) => {
                for warning in &loaded.warnings {
                    println!("warning: {warning}");
                }
                let config = &loaded.config;
                check_routes(&config.services)?;
                println!(
                    "{}: good: {} connection server(s), {} data server(s), {} service(s)",
                    self.file.display(),
                    config.connection_servers().count(),
                    config.data_servers().count(),
                    config.services.len(),
                );
                Ok(ExitCode::SUCCESS)
            }
            Err(Error::Invalid(findings)) => {
                for finding in &findings {
                    eprintln!("error: {finding}");
                }
                eprintln!("{}: {} error(s)", self.file.display(), findings.len());
                Ok(ExitCode::FAILURE)
            }
            Err(error) => Err(error.into()),
        }
    }
}
