//! `baton lab` by itself: `cargo run -p baton-lab --example lab -- up labs/servers.toml`.

use std::process::ExitCode;

use baton_lab::cli::{LabCommand, run};
use clap::Parser;

/// A cluster of network namespaces on this machine.
#[derive(Parser)]
#[command(name = "lab")]
struct Arguments {
    #[command(subcommand)]
    command: LabCommand,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("lab: {error}");
            ExitCode::FAILURE
        }
    }
}
