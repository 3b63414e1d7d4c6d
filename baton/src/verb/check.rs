//! `baton check`: what is wrong with a configuration, where, and what to do.

mod certificates;

use std::{
    fmt::Display,
    path::{Path, PathBuf},
    process::ExitCode,
    time::SystemTime,
};

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
                let directory = self.file.parent().unwrap_or(Path::new(""));
                let found = certificates::look(config, directory, SystemTime::now());
                for warning in &found.warnings {
                    println!("warning: {warning}");
                }
                if !found.errors.is_empty() {
                    return Ok(self.fail(&found.errors));
                }
                println!(
                    "{}: good: {} connection server(s), {} data server(s), {} service(s)",
                    self.file.display(),
                    config.connection_servers().count(),
                    config.data_servers().count(),
                    config.services.len(),
                );
                Ok(ExitCode::SUCCESS)
            }
            Err(Error::Invalid(findings)) => Ok(self.fail(&findings)),
            Err(error) => Err(error.into()),
        }
    }

    /// Prints errors in the file, or in those that it names.
    fn fail(&self, errors: &[impl Display]) -> ExitCode {
        for error in errors {
            eprintln!("error: {error}");
        }
        eprintln!("{}: {} error(s)", self.file.display(), errors.len());
        ExitCode::FAILURE
    }
}
