//! `baton lab …`: the verbs, for the binary to mount.

use std::fmt::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::down::down;
use crate::error::{Doing, Result};
use crate::fault::Fault;
use crate::file::{Lab, LabName};
use crate::running::{HostView, Running};
use crate::up::Options;

/// A cluster of network namespaces on this machine.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum LabCommand {
    /// Raise the lab of a file, and wait until everything in it is ready
    Up {
        /// The lab file
        file: PathBuf,
        /// The baton program that nodes run [default: this one]
        #[arg(long)]
        baton: Option<PathBuf>,
        /// Seconds that each program may take to become ready
        #[arg(long, default_value_t = crate::PATIENCE.as_secs())]
        timeout: u64,
    },
    /// Take a lab down; what it did not make is left alone
    Down {
        /// The lab to take down [default: the only one that is up]
        #[arg(long)]
        lab: Option<String>,
    },
    /// Run a command on a host, with its exit status
    Exec {
        /// A host of the lab file, or "bridge"
        host: String,
        /// Which lab [default: the only one that is up]
        #[arg(long)]
        lab: Option<String>,
        /// The command and its arguments
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Let something go wrong at a host; `lab down` undoes it
    Fault {
        /// A host of the lab file
        host: String,
        /// Which lab [default: the only one that is up]
        #[arg(long)]
        lab: Option<String>,
        /// What goes wrong
        #[command(subcommand)]
        fault: Fault,
    },
    /// Show the labs that are up: hosts, addresses, roles, what runs
    List,
}

/// Does what a verb says. Progress goes to standard error, results to standard output.
///
/// # Errors
/// Whatever the verb's own call gives.
pub fn run(command: LabCommand) -> Result<ExitCode> {
    match command {
        LabCommand::Up {
            file,
            baton,
            timeout,
        } => up(&file, baton, Duration::from_secs(timeout)),
        LabCommand::Down { lab } => take_down(lab),
        LabCommand::Exec { host, lab, command } => exec(&host, lab, &command),
        LabCommand::Fault { host, lab, fault } => {
            running(lab)?.fault(&host, &fault)?;
            Ok(ExitCode::SUCCESS)
        }
        LabCommand::List => {
            print!("{}", list()?);
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn up(file: &PathBuf, baton: Option<PathBuf>, patience: Duration) -> Result<ExitCode> {
    let text = std::fs::read_to_string(file).doing(|| format!("read {}", file.display()))?;
    let lab = Lab::parse(&text)?;
    let baton = match baton {
        Some(baton) => baton,
        None => std::env::current_exe().doing(|| "find this program's own path".to_owned())?,
    };
    lab.up(&Options { baton, patience }, |step| eprintln!("{step}"))?;
    println!("{} is up: try `lab list`", lab.name());
    Ok(ExitCode::SUCCESS)
}

fn take_down(lab: Option<String>) -> Result<ExitCode> {
    let name = match lab.map(LabName::try_from) {
        Some(Ok(name)) => name,
        Some(Err(why)) => {
            return Err(std::io::Error::other(why)).doing(|| "find that lab".to_owned());
        }
        None => match Running::names().as_slice() {
            [] => {
                println!("no lab is up");
                return Ok(ExitCode::SUCCESS);
            }
            _ => only_name()?,
        },
    };
    let done = down(&name, |step| eprintln!("{step}"))?;
    for warning in &done.warnings {
        eprintln!("warning: {warning}");
    }
    println!(
        "{name} {}",
        if done.was_up { "is down" } else { "was not up" }
    );
    Ok(ExitCode::SUCCESS)
}

/// The name of the only lab that is up, even if this program cannot read the lab's file.
fn only_name() -> Result<LabName> {
    let name = crate::running::only_name()?;
    LabName::try_from(name)
        .map_err(std::io::Error::other)
        .doing(|| "read the name of the lab that is up".to_owned())
}

fn exec(host: &str, lab: Option<String>, words: &[String]) -> Result<ExitCode> {
    let mut command = running(lab)?.exec(host)?;
    command.args(words);
    // Returns only if it could not become the command.
    Err(command.exec()).doing(|| format!("run {}", words.join(" ")))
}

fn running(lab: Option<String>) -> Result<Running> {
    match lab {
        Some(name) => Running::open(&name),
        None => Running::only(),
    }
}

fn list() -> Result<String> {
    let mut text = String::new();
    for name in Running::names() {
        let lab = Running::open(&name)?;
        line(&mut text, &name);
        for host in lab.hosts()? {
            line(&mut text, &row(&host));
            for thing in &host.things {
                let state = if thing.alive { "alive" } else { "not alive" };
                let row = format!("    {:<12} pid {:<8} {state}", thing.name, thing.pid);
                line(&mut text, &row);
            }
        }
    }
    if text.is_empty() {
        line(&mut text, "no lab is up");
    }
    Ok(text)
}

fn row(host: &HostView) -> String {
    let addresses: Vec<String> = host.addresses.iter().map(ToString::to_string).collect();
    let roles = if host.name == crate::BRIDGE {
        "(joins the others)".to_owned()
    } else if host.roles.is_empty() {
        "client".to_owned()
    } else {
        host.roles.join(" ")
    };
    format!("  {:<15} {:<32} {roles}", host.name, addresses.join(" "))
        .trim_end()
        .to_owned()
}

fn line(text: &mut String, line: &str) {
    let _ = writeln!(text, "{line}"); // a String never fails to grow
}
