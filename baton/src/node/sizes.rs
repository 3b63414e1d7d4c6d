//! Size classes: looks at the files of this data server again and again, tells connection servers what is
//! large, and hears it from others.

use std::{
    collections::HashMap,
    net::{Ipv4Addr, SocketAddrV4},
    time::Duration,
};

use anyhow::Result;
use baton_config::{Large, Service};
use baton_core::sizes::{Known, Report};
use baton_wire::{Clock, HashKey, Message, Sizes as Part};
use tokio::{sync::mpsc, task::JoinHandle};
use tracing::{debug, info, warn};

use super::{
    content::{Found, walk},
    daemon::Daemon,
    heartbeat::clock_now,
    logged::logged,
    tables::{endpoint, services_with_places},
};

/// Between two walks. What was found is told each time, so that a lost message is repaired by the next.
const INTERVAL: Duration = Duration::from_secs(5);

/// What one walk through the files of a service here has found.
pub struct Looked {
    service: SocketAddrV4,
    found: Found,
}

/// A walk that runs, and what it goes by.
struct Walk {
    large: Large,
    key: HashKey,
    task: JoinHandle<()>,
}

/// The walks that run, what they found, and what other nodes have.
pub struct Sizes {
    walks: HashMap<SocketAddrV4, Walk>,
    reports: HashMap<SocketAddrV4, Report>,
    pub(super) known: Known,
    sender: mpsc::Sender<Looked>,
}

impl Sizes {
    /// Nothing yet; what walks find will come out of `sender`'s other end.
    pub fn new(sender: mpsc::Sender<Looked>) -> Self {
        Self {
            walks: HashMap::new(),
            reports: HashMap::new(),
            known: Known::default(),
            sender,
        }
    }

    /// From now on walks for exactly these services, and hashes paths under this key; walks whose settings stay go on.
    pub fn follow<'a>(
        &mut self,
        key: HashKey,
        services: impl IntoIterator<Item = (SocketAddrV4, &'a Service)>,
    ) {
        let mut before = std::mem::take(&mut self.walks);
        for (at, service) in services {
            let Some(large) = &service.large else {
                continue;
            };
            let walk = match before.remove(&at) {
                Some(walk) if walk.large == *large && walk.key == key => walk,
                other => {
                    stop(other);
                    let name = service.name.to_string();
                    let sender = self.sender.clone();
                    Walk {
                        large: large.clone(),
                        key,
                        task: tokio::spawn(look(at, name, large.clone(), key, sender)),
                    }
                }
            };
            self.walks.insert(at, walk);
        }
        before.into_values().for_each(|walk| stop(Some(walk)));
        self.reports.retain(|at, _| self.walks.contains_key(at));
    }

    /// What is to be told after a walk.
    fn note(&mut self, now: Clock, looked: Looked) -> Vec<Part> {
        // A walk that was stopped may have said its last word after that.
        if !self.walks.contains_key(&looked.service) {
            return Vec::new();
        }
        let report = self.reports.entry(looked.service).or_default();
        let count = looked.found.large.len();
        if report.update(now, looked.found.large) {
            info!(service = %looked.service, "{count} large file(s) here");
            if report.left_out() > 0 {
                warn!(
                    service = %looked.service,
                    "{} of them are more than can be told: they count as small",
                    report.left_out()
                );
            }
        }
        report.messages(endpoint(looked.service))
    }
}

fn stop(walk: Option<Walk>) {
    if let Some(walk) = walk {
        walk.task.abort();
    }
}

/// Walks until nobody listens. What goes wrong is said once, until it is something else.
async fn look(
    service: SocketAddrV4,
    name: String,
    large: Large,
    key: HashKey,
    sender: mpsc::Sender<Looked>,
) {
    let mut said = String::new();
    loop {
        let (root, larger_than) = (large.root.clone(), large.larger_than);
        // On a thread of its own: many files take a while.
        let walked = tokio::task::spawn_blocking(move || walk(&root, larger_than, key)).await;
        let (found, word) = match walked {
            Ok(Ok(found)) => {
                let word = shortcomings(&found);
                (Some(found), word)
            }
            Ok(Err(error)) => (None, format!("{error:#}: no size classes here")),
            Err(error) => (None, error.to_string()),
        };
        if word != said && !word.is_empty() {
            warn!(service = name, root = %large.root.display(), "{word}");
        }
        said = word;
        if let Some(found) = found
            && sender.send(Looked { service, found }).await.is_err()
        {
            return;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

fn shortcomings(found: &Found) -> String {
    let mut words = Vec::new();
    if found.cut_off {
        words.push(
            "there are more files than are looked at: those beyond count as small".to_owned(),
        );
    }
    if found.too_long > 0 {
        words.push(format!(
            "the paths of {} large file(s) are too long: they count as small",
            found.too_long
        ));
    }
    words.join("; ")
}

impl Daemon {
    /// Tells connection servers, this node included, what is large here.
    pub(super) async fn tell_sizes(&mut self, looked: Looked) {
        let parts = self.sizes.note(clock_now(), looked);
        let own = self.place.address;
        for part in parts {
            let fronts: Vec<Ipv4Addr> = (self.place.config.connection_servers())
                .filter_map(|node| node.address.ipv4())
                .collect();
            let message = Message::Sizes(part);
            for front in fronts {
                let message = self.sealed(&message, front);
                if front == own {
                    // A node hears itself without a network.
                    self.handle_message(own, &message, clock_now().into());
                } else if let Err(error) = self.socket.send_to(&message, front).await {
                    debug!("{error}");
                }
            }
        }
    }

    /// A part of what is large at a data server.
    pub(super) fn hear_sizes(&mut self, sender: Ipv4Addr, sent: Clock, part: &Part) {
        let from = sender.into();
        if !self.place.me.roles.is_cs() || !self.membership.cluster().serves(from, part.cluster) {
            debug!(%sender, "sizes from no data server of this configuration");
            return;
        }
        let known = self.sizes.known.large(part.cluster).len();
        if self.sizes.known.handle(from, sent, part) {
            logged(self.write_sizes());
            let count = self.sizes.known.large(part.cluster).len();
            if count != known {
                let service = part.cluster;
                info!(?service, "{count} large file(s) in all");
            }
        }
    }

    /// Has the program know what is large.
    pub(super) fn write_sizes(&mut self) -> Result<()> {
        let cluster = self.membership.cluster();
        self.sizes.known.keep(|from, at| cluster.serves(from, at));
        let services = services_with_places(self.place.config.services.iter())?;
        self.tables
            .write_large(&self.dataplane, &services, &self.sizes.known)
    }
}
