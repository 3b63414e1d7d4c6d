//! The client of `make machines`: it sends requests over connections that stay open, checks every answer, and reports
//! as JSON.

use std::process::ExitCode;

fn main() -> ExitCode {
    match baton_tests::machine::client::run(std::env::args().skip(1)) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("client: {error:#}");
            ExitCode::FAILURE
        }
    }
}
