//! A TLS server for BoringSSL's test runner (`make boringssl`), which starts it for each test:
//!
//! ```text
//!  runner, a TLS client that misbehaves <==TCP, which this program opens==> Acceptor, Handshake, Session
//! ```
//!
//! The runner says by arguments what the server is to do and to expect. If it asks for something that an agent cannot
//! do, the program ends with the status 89, and the runner counts the test as unimplemented.
//!
//! With `BATON_MOVES=1` in its environment the program exports the session before each record that comes or goes, and goes
//! on with what it imports, as if each were for another data server. Tickets then come from another data server as well.

mod client;
mod connection;
mod data_server;
mod options;

use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::ExitCode;

use data_server::DataServers;
use options::{Options, Unsupported};

/// The runner takes this status for "unimplemented".
const UNIMPLEMENTED: u8 = 89;

/// Why a test does not pass here.
enum Failure {
    Unsupported(Unsupported),
    Test(String),
}

impl From<Unsupported> for Failure {
    fn from(unsupported: Unsupported) -> Self {
        Self::Unsupported(unsupported)
    }
}

impl From<String> for Failure {
    fn from(error: String) -> Self {
        Self::Test(error)
    }
}

fn main() -> ExitCode {
    if env::args().any(|argument| argument == "-is-handshaker-supported") {
        println!("No");
        return ExitCode::SUCCESS;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Unsupported(unsupported)) => {
            note(&unsupported);
            eprintln!("unimplemented: {unsupported}");
            ExitCode::from(UNIMPLEMENTED)
        }
        Err(Failure::Test(error)) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let (first, later) = Options::parse(&arguments)?;
    let is_moving = env::var_os("BATON_MOVES").is_some();
    let data_servers = DataServers::new(is_moving)?;
    for number in 0..=first.resume_count {
        let options = match number {
            0 => &first,
            _ => &later,
        };
        let acceptor = data_servers.acceptor(number, options)?;
        connection::serve(&acceptor, options, is_moving)?;
    }
    Ok(())
}

/// Appends what is not supported to the file that `BATON_UNIMPLEMENTED` names, for a table at the end.
fn note(unsupported: &Unsupported) {
    let file = env::var_os("BATON_UNIMPLEMENTED").and_then(|path| {
        let mut file = OpenOptions::new();
        file.create(true).append(true).open(path).ok()
    });
    if let Some(mut file) = file {
        // Without the line the table lacks a test, and the numbers of the runner are still right.
        let _ = file.write_all(format!("{unsupported}\n").as_bytes());
    }
}
