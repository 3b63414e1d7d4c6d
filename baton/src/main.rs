//! The one binary: the daemon of a node and the command line.

mod demo;
mod doctor;
mod drain;
mod node;
mod status;
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
