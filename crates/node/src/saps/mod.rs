//! The daemon of an I/O server or of an application node. baton attaches no program to an interface of such a node:
//! the daemon itself joins the connections (`baton_saps`).

mod application;
mod io;
pub mod programs;
mod report;

use std::{collections::BTreeMap, time::Instant};

use anyhow::{Context, Result, bail};
use baton_config::{Config, Forwarding, ForwardingNetwork, ForwardingPolicy, Key, diff};
use baton_dataplane::Pins;
use baton_net::{Host, Undo};
use baton_saps::{NetworkKind, PortPolicy};
use baton_wire::ClusterKey;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::sync::mpsc;
use tracing::{error, info, warn};

use super::metrics;
use crate::operator::control::{self, Call, Request, Response};
use crate::{
    daemon::signals::{Ending, SignalEvent, Signals},
    local_node::{self, LocalNode},
    network::interface_watch,
    take_back::{End, log_end, take_back},
};

/// The cluster's secret, which is the key of the channels. The configuration makes sure that nodes of these roles have
/// it.
fn secret(local: &LocalNode) -> Result<&ClusterKey> {
    let key = &local.config.cluster.key;
    key.secret()
        .context("channels need the cluster's secret, and this node has only its own keys")
}

/// The cluster's previous secret, while secrets are being rotated.
fn previous_secret(local: &LocalNode) -> Option<&ClusterKey> {
    local
        .config
        .cluster
        .previous_key
        .as_ref()
        .and_then(Key::secret)
}

/// A node that has started, with everything that it holds until it ends.
struct Daemon {
    local: LocalNode,
    host: Host,
    part: Part,
    started: Instant,
    /// Held for as long as this daemon lives.
    _lock: local_node::Lock,
}

/// What runs on the node, by its role.
enum Part {
    Io(io::Io),
    Application(application::Application),
}

/// Runs the node until it is told to end. With `fresh`, what an earlier daemon noted about the programs' sockets is
/// not taken over.
pub async fn run(local: LocalNode, fresh: bool) -> Result<End> {
    allow_files();
    let run_dir = &local.config.local.run_dir;
    std::fs::create_dir_all(run_dir)
        .with_context(|| format!("cannot make {}", run_dir.display()))?;
    let lock = local_node::lock(run_dir).await?;
    let mut signals = Signals::begin()?;
    let journal = local_node::journal(&local.config);
    let undo = Undo::load(&journal).context("cannot read the journal of changes to this host")?;
    let mut host = Host::new(local.netlink.clone(), undo);
    let (calls_sender, mut calls) = mpsc::channel(16);
    let pins = Pins::new(&local.config.local.bpf_dir);
    let is_successor = programs::has_pinned_hooks(&pins);
    if fresh {
        pins.forget_maps()?;
    }
    let begun = begin(&local, &mut host, calls_sender).await;
    let part = match begun {
        Ok(part) => part,
        // What an earlier daemon left stays in place, and goes on.
        Err(error) if is_successor => return Err(error),
        Err(error) => {
            log(take_down(&local, &mut host).await);
            return Err(error);
        }
    };
    let mut watch = interface_watch::Watch::begin()?;
    let mut daemon = Daemon {
        local,
        host,
        part,
        started: Instant::now(),
        _lock: lock,
    };
    info!("ready");
    let ending = daemon.serve(&mut calls, &mut signals, &mut watch).await;
    if ending == Ending::LeaveInPlace {
        info!("ended; the addresses stay");
        return Ok(End::LeftInPlace);
    }
    // Connections end before the addresses are removed, so that their clients are told.
    let Daemon {
        local,
        mut host,
        part,
        started,
        _lock,
    } = daemon;
    drop(part);
    if ending == Ending::WithoutInterface {
        let gone = interface_watch::report_gone(&local).await;
        log(host.unwind().await.into_iter().map(Into::into).collect());
        match interface_watch::until_back(
            &local,
            gone,
            &mut calls,
            &mut signals,
            &mut watch,
            started,
        )
        .await
        {
            Ending::Again => return Ok(End::Again),
            Ending::LeaveInPlace => return Ok(End::LeftInPlace),
            Ending::TakeDown | Ending::WithoutInterface => {}
        }
    }
    let errors = log(take_down(&local, &mut host).await);
    log_end(errors);
    Ok(End::TakenDown { errors })
}

/// Raises the limit of open files to the hard limit. Each connection is an open file here, and shells usually start
/// programs with a limit of 1024.
fn allow_files() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(soft, hard)| match soft == hard {
        true => Ok(()),
        false => setrlimit(Resource::RLIMIT_NOFILE, hard, hard),
    });
    if let Err(errno) = raised {
        warn!("cannot raise the limit of open files, which also limits connections: {errno}");
    }
}

async fn begin(local: &LocalNode, host: &mut Host, calls: mpsc::Sender<Call>) -> Result<Part> {
    let forwarding = forwarding(&local.config)?;
    let part = if local.me.roles.is_io() {
        Part::Io(io::Io::start(local, forwarding, host).await?)
    } else {
        Part::Application(application::Application::start(local, forwarding)?)
    };
    control::listen(&control::socket_path(&local.config), calls.clone())?;
    if let Some(address) = local.config.local.metrics {
        metrics::serve(address, calls).await?;
    }
    Ok(part)
}

/// The `[forwarding]` section, which a configuration has if a node has one of these roles.
fn forwarding(config: &Config) -> Result<&Forwarding> {
    let forwarding = config.forwarding.as_ref();
    forwarding.context("the configuration has no [forwarding] section: add it")
}

fn network(forwarding: &Forwarding) -> NetworkKind {
    match forwarding.network {
        ForwardingNetwork::Tcp => NetworkKind::Tcp,
        ForwardingNetwork::Quic => NetworkKind::Quic,
    }
}

fn policy(forwarding: &Forwarding) -> PortPolicy {
    match forwarding.policy {
        ForwardingPolicy::RoundRobin => PortPolicy::RoundRobin,
        ForwardingPolicy::Weighted => PortPolicy::Weighted,
        ForwardingPolicy::LeastLoaded => PortPolicy::LeastLoaded,
        ForwardingPolicy::Client => PortPolicy::Client,
    }
}

fn weights(config: &Config) -> BTreeMap<String, u8> {
    let nodes = config.nodes.iter();
    nodes
        .map(|node| (node.name.to_string(), node.weight))
        .collect()
}

async fn take_down(local: &LocalNode, host: &mut Host) -> Vec<anyhow::Error> {
    let pins = Pins::new(&local.config.local.bpf_dir);
    take_back(host, &pins, &control::socket_path(&local.config)).await
}

/// Logs the errors and returns their number.
fn log(errors: Vec<anyhow::Error>) -> usize {
    for error in &errors {
        error!("{error:#}");
    }
    errors.len()
}

impl Daemon {
    /// Answers requests until a signal comes, or until an interface of an I/O server is gone. Application nodes reach
    /// the I/O server by whatever interface there is.
    async fn serve(
        &mut self,
        calls: &mut mpsc::Receiver<Call>,
        signals: &mut Signals,
        watch: &mut interface_watch::Watch,
    ) -> Ending {
        loop {
            tokio::select! {
                () = watch.news(), if matches!(self.part, Part::Io(_)) => {
                    if !self.local.has_its_interfaces().await {
                        return Ending::WithoutInterface;
                    }
                }
                told = signals.next() => match told {
                    SignalEvent::End(ending) => return ending,
                    SignalEvent::Reload => match self.reload() {
                        Ok(message) => info!("{message}"),
                        Err(error) => warn!("not reloaded: {error:#}"),
                    },
                },
                Some((request, reply)) = calls.recv() => {
                    // The asker may be gone.
                    let _ = reply.send(self.answer(&request));
                }
            }
        }
    }

    fn answer(&mut self, request: &Request) -> Response {
        let done = match request {
            Request::Status => return Response::Status(Box::new(report::status(self))),
            Request::Reload => self.reload(),
            _ => Err(anyhow::anyhow!(
                "{} is an I/O server or an application node and cannot do this; ask a connection server",
                self.local.me.name
            )),
        };
        match done {
            Ok(message) => Response::Done { message },
            Err(error) => error.into(),
        }
    }

    /// Applies what can change while the node runs: the other nodes, and the policy.
    fn reload(&mut self) -> Result<String> {
        let new = Config::read(&self.local.file)?.config;
        match diff(&self.local.config, &new, &self.local.me.name) {
            Ok(None) => return Ok("nothing changed".into()),
            Ok(Some(changes)) if changes.keys => bail!("only a restart can apply another key"),
            Ok(Some(_)) => {}
            Err(reasons) => {
                let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
                bail!("only a restart can apply this: {}", reasons.join("; "));
            }
        }
        match &self.part {
            Part::Io(io) => io.set_policy(policy(forwarding(&new)?), weights(&new)),
            Part::Application(application) => application.sockets.set_direct(&new)?,
        }
        self.local.config = new;
        let nodes = self.local.config.nodes.len();
        Ok(format!("reloaded: the cluster has {nodes} node(s)"))
    }
}
