//! `baton drain`: a data server takes no new requests, and its connections leave it.

use std::{
    path::Path,
    process::ExitCode,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use baton_config::{Config, FrontAddress};
use baton_node::{
    control::{DrainRequest, Request, Response, ask, status},
    service_manager::{News, tell},
    status::{Peer, Status},
};
use clap::Args;

use super::{ConfigFile, migrate};
use crate::drain::{Bar, left};

/// Drain a data server.
///
/// From now on no new request goes there. Connections move to other data servers with their next request, or,
/// where the configuration says so (`release_after`), once nothing has happened on them for a while. Responses under
/// way go on from another data server at once where their service has `resume = true`, if that one has the very same;
/// else they end where they are, and so do connections that cannot move (WebSocket, bodies of unknown length,
/// handover = "never").
///
/// If the data server is also the connection server in front, another candidate then takes over, as with `baton
/// migrate`; if none does, it stays in front, and the command says why. Where something else moves the cluster
/// addresses (`address` of `[failover]`), that is left to it.
#[derive(Args)]
pub struct Drain {
    /// The data server to drain [default: the node that runs here]
    node: Option<String>,
    /// End the drain: let it take requests again
    #[arg(long, conflicts_with_all = ["wait", "until_end"])]
    undo: bool,
    /// Wait until it holds no connection of its services any more
    #[arg(long)]
    wait: bool,
    /// Wait no longer than that, then fail and say what is left: 90s, 10m, 1h
    #[arg(long, value_name = "TIME", requires = "wait", value_parser = time)]
    timeout: Option<Duration>,
    /// Drain even if no other data server takes its requests: clients then get a 503
    #[arg(long)]
    force: bool,
    /// Drain the node that runs here only until its daemon ends: for service managers, before they stop it
    #[arg(long)]
    until_end: bool,
    #[command(flatten)]
    config: ConfigFile,
}

/// So long a node may take to show that it has heard.
const HEARD: Duration = Duration::from_secs(6);

/// A node counts its connections every second, and says so in its heartbeat: an empty one has said so for this
/// long.
const EMPTY: Duration = Duration::from_millis(2500);

const LOOK: Duration = Duration::from_millis(200);

/// A service manager that runs this before it stops the node is told that often that it goes on,
const TELL: Duration = Duration::from_secs(1);

/// and that it is not to give up for so long.
const LONGER: Duration = Duration::from_secs(30);

impl Drain {
    /// Returns when it has taken effect; with `--wait` when the node is empty.
    pub fn run(self) -> Result<ExitCode> {
        let file = &self.config.config;
        let begin = Instant::now();
        let here = status(file)?;
        let name = self.node.clone().unwrap_or_else(|| here.node.clone());
        let is_ds = here.roles.iter().any(|role| role == "ds");
        if self.until_end && name == here.node && !is_ds {
            step_back(file, &here, &name)?;
            println!("{name} is no data server: there is nothing to drain");
            return Ok(ExitCode::SUCCESS);
        }
        self.say(&name)?;
        if !self.undo {
            step_back(file, &here, &name)?;
        }
        let before = self.heard(&name)?;
        if self.undo {
            println!("{name} takes requests again");
            return Ok(ExitCode::SUCCESS);
        }
        if !self.wait {
            let open = before.open();
            println!("{name} drains: it takes no new requests, and has {open} connections open");
            return Ok(ExitCode::SUCCESS);
        }
        self.empty(&name, begin, &before)
    }

    fn say(&self, name: &str) -> Result<()> {
        let wish = DrainRequest {
            node: name.to_owned(),
            undo: self.undo,
            force: self.force,
            until_end: self.until_end,
        };
        match ask(&self.config.config, &Request::Drain(wish))? {
            Response::Done { .. } => Ok(()),
            other => Err(other.unexpected()),
        }
    }

    /// Waits until the node shows it.
    fn heard(&self, name: &str) -> Result<Peer> {
        let end = Instant::now() + HEARD;
        loop {
            let now = status(&self.config.config)?;
            let peer = peer(&now, name)?;
            if peer.draining != self.undo {
                return Ok(peer);
            }
            if Instant::now() >= end {
                bail!(
                    "{name} was sent the order, but has not shown within {} s that it received it: it is {}; see that \
                     `baton node` runs there, with the same cluster key and the right time; if it receives the order \
                     after all, `baton drain {name}{}` takes it back",
                    HEARD.as_secs(),
                    peer.state,
                    if self.undo { "" } else { " --undo" },
                );
            }
            sleep(LOOK);
        }
    }

    fn empty(&self, name: &str, begin: Instant, before: &Peer) -> Result<ExitCode> {
        let mut bar = Bar::new(before.open());
        let mut empty_since = None;
        let mut told: Option<Instant> = None;
        loop {
            let status = status(&self.config.config)?;
            let peer = peer(&status, name)?;
            if !peer.draining {
                bail!("{name} no longer drains: somebody has ended it");
            }
            bar.show(name, peer.open());
            if told.is_none_or(|told| told.elapsed() >= TELL) {
                let open = peer.open();
                let drains = format!("drains: {open} connections open");
                tell(&[News::Longer(LONGER), News::Status(drains)]);
                told = Some(Instant::now());
            }
            if peer.open() > 0 {
                empty_since = None;
            } else if empty_since.get_or_insert_with(Instant::now).elapsed() >= EMPTY {
                bar.end();
                let took = begin.elapsed().as_secs_f64();
                println!(
                    "{name} is empty: {} connections have left in {took:.1} s",
                    bar.most()
                );
                return Ok(ExitCode::SUCCESS);
            }
            if let Some(timeout) = self.timeout
                && begin.elapsed() >= timeout
            {
                bar.end();
                bail!(
                    "{name} still drains, and is not empty after {} s: {}",
                    timeout.as_secs(),
                    left(&peer)
                );
            }
            sleep(LOOK);
        }
    }
}

/// Has another candidate take over from a node that is in front, and says so; or why it stays there, since that is no
/// reason not to drain, or to stop.
fn step_back(file: &Path, here: &Status, name: &str) -> Result<()> {
    let config = Config::read(file)?.config;
    let node = config.node_named(name);
    if !node.is_some_and(|node| node.roles.is_cs()) {
        return Ok(());
    }
    let managed = (config.failover.as_ref()).filter(|it| it.address == FrontAddress::Managed);
    if config.failover.is_some() && managed.is_none() {
        // Whoever moves the addresses sees to it.
        return Ok(());
    }
    // Only candidates know who is in front; of others' orders the node itself says whether it is.
    let is_elsewhere =
        (here.failover.as_ref()).is_some_and(|it| it.front.as_deref().is_some_and(|it| it != name));
    if is_elsewhere {
        return Ok(());
    }
    let candidates = managed.map_or(&[][..], |failover| &failover.candidates);
    let others = candidates
        .iter()
        .filter(|candidate| candidate.as_str() != name);
    let mut why = Vec::new();
    for to in others {
        match migrate::carry_out(file, name, to.as_str()) {
            Ok(_) => {
                println!("{to} is in front now, in place of {name}");
                return Ok(());
            }
            Err(error) => why.push(format!("{error:#}")),
        }
    }
    if why.is_empty() {
        why.push("there is no other candidate ([failover])".into());
    }
    println!(
        "{name} is a connection server, and none took over from it: {}",
        why.join("; ")
    );
    Ok(())
}

fn peer(status: &Status, name: &str) -> Result<Peer> {
    let mut peers = status.nodes.iter();
    let found = peers.find(|peer| peer.name == name);
    found
        .cloned()
        .with_context(|| format!("the node that runs here no longer knows {name}"))
}

/// A time with a unit, or a number of seconds.
fn time(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    humantime::parse_duration(text).map_err(|error| error.to_string())
}
