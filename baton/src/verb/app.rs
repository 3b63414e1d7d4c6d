//! `baton app -- CMD…`: puts itself into the control group of this application node, and becomes the program. So
//! signals, exit status and standard streams are the program's own.

use std::{ffi::OsString, process::ExitCode};

use anyhow::{Result, bail};
use baton_config::Config;
use baton_dataplane::{Pins, app_is_alive};
use clap::Args;

use super::{ConfigFile, become_program::become_program};

#[derive(Args)]
pub struct App {
    #[command(flatten)]
    config: ConfigFile,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

impl App {
    pub fn run(self) -> Result<ExitCode> {
        let local = Config::read(&self.config.config)?.config.local;
        let pins = Pins::new(&local.bpf_dir);
        let group = baton_node::saps::programs::group(&pins)?;
        if group.path().exists() && !app_is_alive(&pins).unwrap_or(false) {
            bail!(
                "the daemon of this application node is not running: start `baton node --config {}`, otherwise the program can reach nothing",
                self.config.config.display()
            );
        }
        group.enter()?;
        become_program(&self.command)
    }
}
