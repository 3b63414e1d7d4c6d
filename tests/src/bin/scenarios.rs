//! Runs lab scenarios; `--help` says how.

use std::process::ExitCode;

fn main() -> ExitCode {
    baton_tests::runner::main()
}
