//! `baton eop`: redirectable sockets of this machine's programs say in the TCP handshake that they are.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Result, bail};
use baton_dataplane::EopPins;
use clap::Subcommand;

use super::group::group_or_all;

/// What is to be done.
#[derive(Subcommand)]
pub enum Eop {
    /// Announce EOP for sockets of programs in a control group that ask for it
    Attach {
        /// The control group, a directory of cgroup v2 [default: all programs of the machine]
        #[arg(long, value_name = "DIRECTORY")]
        cgroup: Option<PathBuf>,
    },
    /// Announce EOP no longer; connections stay as they are
    Detach,
    /// Show the counters of what was announced and agreed
    Status,
}

impl Eop {
    pub fn run(self) -> Result<ExitCode> {
        let pins = EopPins::default();
        match self {
            Self::Attach { cgroup } => {
                let group = group_or_all(cgroup)?;
                pins.attach(&group)?;
                println!(
                    "EOP is announced for programs in {} that ask for it",
                    group.display()
                );
            }
            Self::Detach => {
                pins.detach()?;
                println!("EOP is not announced here");
            }
            Self::Status => {
                let Some(counters) = pins.counters()? else {
                    bail!("EOP is not announced here; start with: baton eop attach");
                };
                for (name, value) in counters {
                    println!("{name} {value}");
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
