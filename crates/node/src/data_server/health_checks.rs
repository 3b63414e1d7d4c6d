//! Health checks of this data server's own servers: one task for each service.

use std::{
    collections::HashMap,
    future::pending,
    net::{SocketAddr, SocketAddrV4},
    num::NonZeroU32,
    path::PathBuf,
    pin::Pin,
    time::{Duration, Instant},
};

use baton_agent::{Ends, terminate::settings::ServerAddress};
use baton_config::{HealthCheck as Check, Probe as Wanted, Service};
use baton_core::{
    Moment,
    health::{self, Action, HealthCheck, Settings},
    listening::ListeningClock,
};
use baton_net::probe::{Get, Probe, Reason, probe_here, probe_socket};
use baton_wire::Health;
use tokio::{sync::mpsc, task::spawn_blocking, time::sleep};
use tracing::{info, warn};

use crate::{
    data_server::{
        address_translation::{self, Looks},
        tls_agent::server_address,
    },
    owned_task::OwnedTask,
};

/// A new verdict on one service, sent when it changes.
pub struct CheckResult {
    /// The address of the service.
    pub service: SocketAddrV4,
    /// The health of its server from now on.
    pub health: Health,
}

/// The check of one service, with the server that it asks, and the task that does it.
type Running = (Option<(Server, Check)>, Option<OwnedTask>);

/// The server that a check asks.
#[derive(Clone, PartialEq, Eq)]
enum Server {
    /// It listens at this address.
    At(SocketAddrV4),
    /// It listens at this unix socket, and each connection begins with these bytes.
    Socket(PathBuf, Vec<u8>),
}

impl Server {
    /// The server of the service at this address. It may be behind this data server's TLS agent.
    fn of(address: SocketAddrV4, service: &Service) -> Self {
        let terminate = service.terminate.as_ref();
        match terminate.map(|terminate| server_address(&terminate.server)) {
            None => Self::At(address),
            Some(ServerAddress::Port(port)) => Self::At(SocketAddrV4::new(*address.ip(), port)),
            Some(ServerAddress::Socket {
                path,
                client_address,
            }) => {
                // As where the server sees addresses: the check comes from the cluster address.
                let ends = Ends {
                    client: address,
                    cluster: address,
                };
                Self::Socket(path, client_address.header(&ends))
            }
        }
    }

    /// The address that a request is for.
    fn host(&self, service: SocketAddrV4) -> SocketAddr {
        match self {
            Self::At(address) => SocketAddr::V4(*address),
            Self::Socket(..) => (*service.ip(), 80).into(),
        }
    }

    async fn probe(&self, wanted: &Probe) -> Result<(), Reason> {
        match self {
            Self::At(address) => probe_here(SocketAddr::V4(*address), wanted).await,
            Self::Socket(path, first) => probe_socket(path, first, wanted).await,
        }
    }
}

/// The checks that run, and their last verdicts.
pub struct Checks {
    running: HashMap<SocketAddrV4, Running>,
    verdicts: HashMap<SocketAddrV4, Health>,
    report: mpsc::Sender<CheckResult>,
    /// The interfaces by which clients' packets may come in.
    interfaces: Vec<String>,
    /// The looks for address translation on this host. They begin with the first check.
    looks: Option<Looks>,
}

impl Checks {
    /// Makes an empty set of checks. New verdicts are sent to `report`. `interfaces` are those by which clients'
    /// packets may come in.
    pub fn new(report: mpsc::Sender<CheckResult>, interfaces: Vec<String>) -> Self {
        Self {
            interfaces,
            running: HashMap::new(),
            verdicts: HashMap::new(),
            report,
            looks: None,
        }
    }

    /// Checks exactly these services from now on. Checks that did not change go on undisturbed.
    pub fn follow<'a>(&mut self, services: impl IntoIterator<Item = (SocketAddrV4, &'a Service)>) {
        let mut before = std::mem::take(&mut self.running);
        for (address, service) in services {
            let running = match before.remove(&address) {
                Some((check, task)) if check == wanted(address, service) => (check, task),
                _ => self.start(address, service),
            };
            self.running.insert(address, running);
        }
        for address in before.into_keys() {
            self.verdicts.remove(&address);
        }
    }

    /// Remembers a verdict that came from `report`'s other end.
    pub fn note(&mut self, verdict: &CheckResult) {
        // A verdict may still come from the channel after its task was stopped.
        if self.running.contains_key(&verdict.service) {
            self.verdicts.insert(verdict.service, verdict.health);
        }
    }

    /// Returns the health of a service's server on this host; `Unknown` before the first verdict.
    pub fn health(&self, service: SocketAddrV4) -> Health {
        self.verdicts
            .get(&service)
            .copied()
            .unwrap_or(Health::Unknown)
    }

    fn start(&mut self, address: SocketAddrV4, service: &Service) -> Running {
        let Some((server, check)) = wanted(address, service) else {
            // Without a configured check the server is taken to be healthy.
            self.verdicts.insert(address, Health::Passing);
            return (None, None);
        };
        let task = OwnedTask::spawn(run(
            (address, server.clone()),
            service.name.to_string(),
            check.clone(),
            self.interfaces.clone(),
            self.looks
                .get_or_insert_with(address_translation::look)
                .clone(),
            self.report.clone(),
        ));
        (Some((server, check)), Some(task))
    }
}

/// The check of a service, and the server that it asks.
fn wanted(address: SocketAddrV4, service: &Service) -> Option<(Server, Check)> {
    let check = service.health.clone()?;
    Some((Server::of(address, service), check))
}

/// While a probe is under way the clock is looked at this often, because a server's silence counts only while this
/// process runs and listens.
const LOOK: Duration = Duration::from_millis(50);

/// A probe that is under way.
struct UnderWay {
    id: health::Probe,
    found: Pin<Box<dyn Future<Output = Result<(), Reason>> + Send>>,
}

impl UnderWay {
    fn begin(id: health::Probe, server: Server, wanted: Probe) -> Self {
        let found = async move { server.probe(&wanted).await };
        Self {
            id,
            found: Box::pin(found),
        }
    }
}

/// Waits for the result of the probe under way; never returns if there is none.
async fn found(under_way: &mut Option<UnderWay>) -> (health::Probe, Result<(), Reason>) {
    match under_way {
        Some(probe) => (probe.id, probe.found.as_mut().await),
        None => pending().await,
    }
}

/// Checks one service, whose address is `target`, by asking `server` until its task is aborted or `report` is closed.
/// The cluster address is local on a data server, so the probe finds the server whether it listens at that address or at
/// all addresses. The answer of a server outside this network namespace does not count, because it could not adopt
/// connections; at a unix socket it does, because there the agent adopts them.
async fn run(
    (target, server): (SocketAddrV4, Server),
    name: String,
    check: Check,
    interfaces: Vec<String>,
    mut looks: Looks,
    report: mpsc::Sender<CheckResult>,
) {
    let wanted = match &check.probe {
        Wanted::Tcp => Probe::Tcp,
        Wanted::Http(path) => match Get::new(path.as_str(), server.host(target)) {
            Some(get) => Probe::Http(get),
            None => {
                warn!(
                    service = name,
                    "cannot check the server: {path} is not a valid HTTP path"
                );
                return;
            }
        },
    };
    // There is no verdict before the first look for address translation.
    if looks.wait_for(Option::is_some).await.is_err() {
        return;
    }
    looks.mark_changed();
    let mut spoiled: Option<String> = None;
    let epoch = Instant::now();
    let mut clock = ListeningClock::new(Moment::default(), LOOK);
    let mut under_way = None;
    let mut health = HealthCheck::new(
        Moment::default(),
        Settings {
            interval: check.interval,
            timeout: check.timeout,
            rise: NonZeroU32::from(check.rise),
            fall: NonZeroU32::from(check.fall),
        },
    );
    loop {
        if let Some(shown) = address_translation::unread(&mut looks) {
            let interfaces = interfaces.clone();
            // Reading thousands of rules takes a while, so it does not block the runtime.
            let read = move || shown.spoils(target, &interfaces);
            spoiled = spawn_blocking(read).await.unwrap_or_default();
        }
        let now = clock.look(Moment::after_epoch(epoch.elapsed()));
        while let Some(action) = health.poll(now) {
            match action {
                Action::Start(id) => match &spoiled {
                    Some(what) => {
                        let reason = format!("{what}: `baton doctor` says what to do");
                        health.handle_result(now, id, Err(reason));
                    }
                    None => under_way = Some(UnderWay::begin(id, server.clone(), wanted.clone())),
                },
                Action::Abandon(_) => under_way = None,
                Action::Verdict { health, reason } => {
                    match &reason {
                        None => info!(service = name, "the server here passes its health check"),
                        Some(reason) => warn!(
                            service = name,
                            "the server here fails its health check: {reason}"
                        ),
                    }
                    let service = target;
                    if report.send(CheckResult { service, health }).await.is_err() {
                        return;
                    }
                }
            }
        }
        let rest = health.next_timeout().since(now);
        let nap = if under_way.is_some() {
            rest.min(LOOK)
        } else {
            rest
        };
        clock.retime(nap);
        tokio::select! {
            // A result that has come before the next look at the clock counts as in time.
            biased;
            (id, result) = found(&mut under_way) => {
                under_way = None;
                let now = clock.look(Moment::after_epoch(epoch.elapsed()));
                health.handle_result(now, id, result.map_err(|reason| reason.to_string()));
            }
            () = sleep(nap) => {}
        }
    }
}
