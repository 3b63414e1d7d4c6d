//! What the node does when one of its interfaces goes away, because it is removed, renamed or moved, or its driver is
//! loaded again. The programs that were attached to the interface are gone with it, so the node gives up the rest at
//! once, at its other interfaces too: it sends no HELLO and holds no cluster address anymore, so that the other nodes
//! do without it. When all its interfaces are there again, with the node's address, the program begins anew with the
//! tables of connections that it had, as after a restart.

use std::{
    os::unix::process::CommandExt as _,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::Result;
use baton_dataplane::Pins;
use baton_net::LinkEvents;
use tokio::{
    sync::mpsc,
    time::{Interval, interval},
};
use tracing::{error, info, warn};

use crate::{
    daemon::{
        Daemon,
        signals::{Ending, SignalEvent, Signals},
    },
    local_node::{self, LocalNode},
    logging::logged,
    operator::{
        control::{Call, Request, Response},
        report,
    },
    service_manager::{News, tell},
};

/// The time between two looks at the interfaces, which are needed because the kernel may drop events.
const LOOK: Duration = Duration::from_secs(2);

/// Says when something about interfaces may have changed.
pub struct Watch {
    events: LinkEvents,
    look: Interval,
    has_events: bool,
}

impl Watch {
    /// Begins to watch for events.
    pub fn begin() -> Result<Self> {
        Ok(Self {
            events: LinkEvents::open()?,
            look: interval(LOOK),
            has_events: true,
        })
    }

    /// Waits until something about interfaces may have changed.
    pub async fn news(&mut self) {
        tokio::select! {
            more = self.events.next(), if self.has_events => self.has_events = more,
            _ = self.look.tick() => {}
        }
    }
}

impl LocalNode {
    /// Whether each interface of this node still exists under its index and has the name under which it was found.
    pub async fn has_its_interfaces(&self) -> bool {
        self.gone_interfaces().await.is_empty()
    }

    /// The names of this node's interfaces whose index is gone or has another name.
    async fn gone_interfaces(&self) -> Vec<String> {
        let mut gone = Vec::new();
        for link in &self.links {
            match self.netlink.name_of_link(link.index).await {
                Ok(name) if name.as_deref() == Some(&link.name) => {}
                Ok(_) => gone.push(link.name.clone()),
                Err(error) => warn!("{error}"),
            }
        }
        gone
    }

    /// The names of this node's interfaces under which no interface exists that is up.
    async fn missing_interfaces(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for link in &self.links {
            let found = self.netlink.link_named(&link.name).await;
            if !found.is_ok_and(|found| found.up) {
                missing.push(link.name.clone());
            }
        }
        missing
    }

    /// Whether all interfaces are there and up, and messages for the node's address reach them, so that a node could
    /// begin.
    async fn could_begin(&self) -> bool {
        let found = local_node::links_of(&self.me, &self.netlink).await;
        let holder = self.netlink.link_with(self.me.address.ip()).await;
        match (found, holder) {
            (Ok(links), Ok(holder)) => {
                links.iter().all(|link| link.up) && local_node::is_reached(&links, &holder)
            }
            _ => false,
        }
    }
}

impl Daemon {
    /// Gives up programs and cluster addresses after an interface has gone, and waits until all interfaces are back or
    /// the node is told to end.
    pub(crate) async fn outlast_interface(&mut self, watch: &mut Watch) -> Ending {
        let gone = report_gone(&self.local).await;
        self.stop_failover();
        // Addresses go before programs: a data server without its program would answer with RSTs.
        self.leave_renamed().await;
        for error in self.host.unwind().await {
            warn!("{error}");
        }
        self.dataplane.release();
        let pins = Pins::new(&self.local.config.local.bpf_dir);
        logged(pins.forget_links().map_err(Into::into));
        let (calls, signals) = (&mut self.incoming.calls, &mut self.signals);
        until_back(
            &self.local,
            gone,
            calls,
            signals,
            watch,
            self.clock.started(),
        )
        .await
    }

    /// Removes the cluster addresses from the first interface if it was renamed. The journal knows them only by the old
    /// name.
    async fn leave_renamed(&self) {
        let (netlink, link) = (&self.local.netlink, &self.local.link);
        let Ok(Some(name)) = netlink.name_of_link(link.index).await else {
            return;
        };
        if name == link.name {
            return;
        }
        for (address, at) in self.held_places() {
            if at == link.name {
                let removed = netlink.remove_address(&name, address.ip()).await;
                logged(removed.map(drop).map_err(Into::into));
            }
        }
    }
}

/// Logs as an error which interfaces are gone, tells the service manager, and returns their names.
pub async fn report_gone(local: &LocalNode) -> Vec<String> {
    let gone = local.gone_interfaces().await;
    let message = are_gone(&gone);
    error!(
        "{message}: this node has given up its cluster addresses and programs, and starts again when all its \
         interfaces ({}) exist, are up and have the address {}",
        local.interface_names().join(", "),
        local.address
    );
    tell(&[News::Status(message)]);
    gone
}

fn are_gone(names: &[String]) -> String {
    match names {
        [one] => format!("the interface {one} is gone"),
        several => format!("the interfaces {} are gone", several.join(", ")),
    }
}

fn are_back(all: &[String]) -> String {
    match all {
        [_] => "the interface is back".to_owned(),
        all => format!("all interfaces are back ({})", all.join(", ")),
    }
}

/// Waits until all interfaces are back or the node is told to end. Meanwhile the control socket answers only requests
/// for the status. `gone` are the names of the interfaces that are missing.
pub async fn until_back(
    local: &LocalNode,
    mut gone: Vec<String>,
    calls: &mut mpsc::Receiver<Call>,
    signals: &mut Signals,
    watch: &mut Watch,
    started: Instant,
) -> Ending {
    let since = Instant::now();
    loop {
        tokio::select! {
            told = signals.next() => if let SignalEvent::End(ending) = told {
                return ending;
            },
            Some((request, reply)) = calls.recv() => {
                let seconds = since.elapsed().as_secs();
                let status =
                    report::without_interface(local, &gone, seconds, started.elapsed().as_secs());
                // The client of the control socket may have gone.
                let _ = reply.send(match request {
                    Request::Status => Response::Status(Box::new(status)),
                    _ => Response::Failed {
                        message: format!("this node cannot do that now: {}", status.to_string().trim_end()),
                    },
                });
            }
            () = watch.news() => {
                if local.could_begin().await {
                    info!("{}: starts again", are_back(&local.interface_names()));
                    return Ending::Again;
                }
                // More interfaces may go meanwhile, and some may come back earlier than the rest.
                let missing = local.missing_interfaces().await;
                if !missing.is_empty() && missing != gone {
                    gone = missing;
                    error!("{}", are_gone(&gone));
                    tell(&[News::Status(are_gone(&gone))]);
                }
            }
        }
    }
}

/// Executes this program again in the same process, with the same arguments except `--fresh`, which is only for the
/// first start. It keeps its process id, by which a service manager knows it. This returns only if that fails.
pub fn begin_anew() -> anyhow::Error {
    let mut arguments = std::env::args_os();
    let name = arguments.next();
    let program = std::env::current_exe().ok().filter(|path| path.exists());
    let mut command = Command::new(program.unwrap_or_else(|| "/proc/self/exe".into()));
    if let Some(name) = name {
        command.arg0(name);
    }
    command.args(arguments.filter(|argument| argument != "--fresh"));
    anyhow::Error::new(command.exec()).context("cannot start again by itself; start the node again")
}
