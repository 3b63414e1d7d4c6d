//! `baton eop`: redirectable sockets of this machine's programs say in the TCP handshake that they are.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result, bail};
use baton_dataplane::{EopPins, control_groups, mounts};
use clap::Subcommand;

/// What is to be done.
#[derive(Subcommand)]
pub enum Eop {
    /// Announce EOP for sockets of programs in a control group that ask for it
    Attach {
        /// The group, a directory of cgroup v2; all of the machine if not given
        #[arg(long, value_name = "DIRECTORY")]
        cgroup: Option<PathBuf>,
    },
    /// Announce it no longer; connections stay as they are
    Detach,
    /// Show what was announced and agreed
    Status,
}

impl Eop {
    pub fn run(self) -> Result<ExitCode> {
        let pins = EopPins::default();
        match self {
            Self::Attach { cgroup } => {
                let group = match cgroup {
                    Some(group) => group,
                    None => control_groups(&mounts())
                        .context(
                            "no control groups of version 2 are mounted here; \
                             mount -t cgroup2 none DIRECTORY, and give it with --cgroup",
                        )?
                        .into(),
                };
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
