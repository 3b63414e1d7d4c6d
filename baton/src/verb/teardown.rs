//! `baton teardown`: after a daemon that was killed, or that left its packet path in place.

use std::process::ExitCode;

use anyhow::{Result, bail};

use super::ConfigFile;
use baton_node as node;

/// Takes the host back to what it was. Safe to run twice.
pub fn run(file: &ConfigFile) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let errors = runtime.block_on(node::teardown(&file.config))?;
    if errors.is_empty() {
        println!("this machine is as it was");
        return Ok(ExitCode::SUCCESS);
    }
    for error in &errors {
        eprintln!("{error:#}");
    }
    bail!(
        "{} step(s) could not be taken back; all others were",
        errors.len()
    );
}
