//! Starts the node, servers and programs of a host.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Doing, Result};
use crate::file::{Host, Lab, Program, Server, Thing};
use crate::netns::Namespace;
use crate::process::{Process, Start};
use crate::{certificates, cgroup, clock, config, servers, state, tool};

/// A command that enters a host. The caller adds the program to run there. The command becomes that
/// program, so its pid, standard streams and exit status are the program's own.
///
/// Only the network differs inside. `ip netns exec`, which is not used, would also hide /sys/fs/bpf.
pub(crate) fn enter(namespace: &Namespace, group: Option<&Path>) -> Result<Command> {
    let nsenter = tool::find("nsenter")?;
    let mut command = match group {
        Some(group) => {
            let mut command = cgroup::enter(group)?;
            command.arg(nsenter);
            command
        }
        None => Command::new(nsenter),
    };
    command
        .arg(format!("--net={}", namespace.path().display()))
        .arg("--");
    Ok(command)
}

/// Writes the configuration of one thing, and returns the command that starts it. `baton` is the program
/// that nodes run.
pub(crate) fn prepare(
    lab: &Lab,
    host: &Host,
    thing: &Thing,
    baton: &Path,
    key: &config::ClusterKey,
) -> Result<Start> {
    let directory = state::host_directory(&lab.name, host.name.as_str());
    let (words, leftovers) = match thing {
        Thing::Node => {
            config::write(lab, host, key)?;
            certificates::put(lab, &directory)?;
            (
                node_words(lab, host, baton),
                vec![directory.join("control.sock")],
            )
        }
        Thing::Server(server) => {
            let (words, leftovers) = server_words(host, server, &directory)?;
            (on_node(lab, host, baton, words), leftovers)
        }
        Thing::Program(program) => {
            let words = on_node(lab, host, baton, program_words(program, baton)?);
            (words, Vec::new())
        }
    };
    let clock = match host.own_clock {
        true => clock::words(&directory)?,
        false => Vec::new(),
    };
    Ok(Start {
        host: host.name.as_str().to_owned(),
        thing: thing.name().to_owned(),
        words: [clock, words].concat(),
        leftovers,
        log: directory.join(format!("{}.log", thing.name())),
        directory,
    })
}

/// Starts a prepared command inside the host and its control group.
pub(crate) fn start(start: Start, namespace: &Namespace, group: Option<&Path>) -> Result<Process> {
    for path in &start.leftovers {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).doing(|| format!("remove {}", path.display()));
            }
            _ => {}
        }
    }
    start.detached(enter(namespace, group)?, namespace.inode)
}

fn node_words(lab: &Lab, host: &Host, baton: &Path) -> Vec<String> {
    let file = config::path(lab, host).display().to_string();
    vec![
        baton.display().to_string(),
        "node".into(),
        "--config".into(),
        file,
    ]
}

/// The command for a program on a host. On an application node it gives the program virtual sockets.
fn on_node(lab: &Lab, host: &Host, baton: &Path, words: Vec<String>) -> Vec<String> {
    if !host.is_app() {
        return words;
    }
    let file = config::path(lab, host).display().to_string();
    let app = [
        baton.display().to_string(),
        "app".into(),
        "--config".into(),
        file,
        "--".into(),
    ];
    app.into_iter().chain(words).collect()
}

fn server_words(
    host: &Host,
    server: &Server,
    directory: &Path,
) -> Result<(Vec<String>, Vec<PathBuf>)> {
    let prepared = servers::prepare(host, server, directory)?;
    let words = match server.container {
        None => prepared.words,
        Some(address) => {
            let shell = tool::find("sh")?.display().to_string();
            let script = include_str!("container.sh").to_owned();
            let own = [
                shell,
                "-c".into(),
                script,
                "container".into(),
                address.to_string(),
            ];
            own.into_iter().chain(prepared.words).collect()
        }
    };
    Ok((words, prepared.leftovers))
}

/// The full path and the arguments of a program. The name `baton` means the program that nodes run.
fn program_words(program: &Program, baton: &Path) -> Result<Vec<String>> {
    let path = if program.program == "baton" {
        baton.display().to_string()
    } else if program.program.contains('/') {
        program.program.clone()
    } else {
        tool::find(&program.program)?.display().to_string()
    };
    Ok([path]
        .into_iter()
        .chain(program.arguments.iter().cloned())
        .collect())
}
