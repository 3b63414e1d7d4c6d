//! The command line, one file a verb.

mod app;
mod become_program;
mod check;
mod client_agent;
mod demo;
mod doctor;
mod drain;
mod eop;
mod group;
mod key;
mod migrate;
mod node;
#[cfg(test)]
mod pages;
mod redirector;
mod redsocks;
mod reload;
mod status;
mod teardown;
mod tls_agent;
mod top;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::{Args, Subcommand};

/// What baton can be told to do.
#[derive(Subcommand)]
pub enum Verb {
    /// Run this machine's node: the daemon
    Node(node::Node),
    /// Run a program whose TCP is at the cluster's I/O server
    App(app::App),
    /// Take this machine back to what it was before the node ran here
    Teardown(ConfigFile),
    /// Say what is wrong with a configuration file
    Check(check::Check),
    /// Make a node's own keys from the cluster's secret
    Key(key::KeyVerb),
    /// Show nodes, health, flows and counters of the node that runs here
    Status(status::Status),
    /// Watch nodes, pools, routes and counters of the node that runs here, live
    Top(top::Top),
    /// Make the running node read its configuration file again
    Reload(ConfigFile),
    /// Let another connection server take over from this one while traffic runs
    Migrate(migrate::Migrate),
    /// Have a data server take no new requests, and let go of the connections it has
    Drain(drain::Drain),
    /// Say what this kernel and network card can and cannot do, and what to change
    Doctor(doctor::Doctor),
    /// Redirectable sockets: announce in the TCP handshake that this host speaks EOP
    #[command(subcommand)]
    Eop(eop::Eop),
    /// Run a program whose TCP connections servers may redirect
    #[command(name = "redsocks")]
    RedSocks(redsocks::RedSocksVerb),
    /// Speak EOP for servers that do not, and redirect their clients
    Redirector(redirector::Redirector),
    /// On a client's host: send packets directly to data servers; connections still begin at the connection server
    #[command(subcommand)]
    ClientAgent(client_agent::ClientAgent),
    /// Speak TLS in place of this data server's servers: the daemon runs it
    #[command(hide = true)]
    TlsAgent(tls_agent::TlsAgentVerb),
    /// Show the whole idea on this machine: raise a small cluster, send requests, tell what happened
    Demo(demo::Demo),
    /// A whole cluster on this machine, in network namespaces
    #[command(subcommand)]
    Lab(baton_lab::cli::LabCommand),
}

/// The configuration that a verb is about.
#[derive(Args, Clone)]
pub struct ConfigFile {
    /// The cluster's configuration file
    #[arg(long, value_name = "FILE", default_value = "/etc/baton/baton.toml")]
    pub config: PathBuf,
}

impl Verb {
    /// Does it.
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Verb::Node(verb) => verb.run(),
            Verb::App(verb) => verb.run(),
            Verb::Teardown(config) => teardown::run(&config),
            Verb::Check(verb) => verb.run(),
            Verb::Key(verb) => verb.run(),
            Verb::Status(verb) => verb.run(),
            Verb::Top(verb) => verb.run(),
            Verb::Reload(config) => reload::run(&config),
            Verb::Migrate(verb) => verb.run(),
            Verb::Drain(verb) => verb.run(),
            Verb::Doctor(verb) => verb.run(),
            Verb::Eop(verb) => verb.run(),
            Verb::RedSocks(verb) => verb.run(),
            Verb::Redirector(verb) => verb.run(),
            Verb::ClientAgent(verb) => verb.run(),
            Verb::TlsAgent(verb) => verb.run(),
            Verb::Demo(verb) => verb.run(),
            Verb::Lab(command) => Ok(baton_lab::cli::run(command)?),
        }
    }
}
