//! The command line: a file for each verb. The daemon that `baton node` runs is the crate `baton-node`.

mod bar;
mod demo;
mod doctor;
mod drain;
mod top;
mod verb;

use std::process::ExitCode;

use clap::Parser;

/// One address, many servers: every request routed by its content, every response straight from the
/// server to the client.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    verb: verb::Verb,
}

fn main() -> ExitCode {
    match Cli::parse().verb.run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("baton: {error:#}");
            ExitCode::FAILURE
        }
    }
}
