//! The process that speaks TLS, apart from the daemon: it reads what a stranger sends, and has the private keys.
//!
//! The daemon starts it, and tells it which services it is to serve ([`ToAgent::Serve`]). If the daemon dies, the process goes on
//! as it is, and connects to the next one ([`daemon`](super::daemon)). If that is another program, it starts a process
//! of its own, which takes over ([`succession`](super::succession)). Then the old one serves the connections that it has
//! until each has ended.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use baton_net::{Error, Result};
use baton_tls::{Acceptor, Certificates, PemFile};
use nix::unistd::setsid;
use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, interval_at};

use super::arrivals::{Arrival, Arrivals};
use super::daemon::Daemon;
use super::judge::Judge;
use super::kept::Kept;
use super::kinds::Kinds;
use super::listeners::{Listeners, Wanted};
use super::local_server::LocalServer;
use super::messages::{FromAgent, Moving, ToAgent};
use super::settings::{Certificate, Report, ServiceSettings, Settings};
use super::state::State;
use super::succession::{Predecessor, accept_successor, hand_over, successor_serves};
use super::tickets::Tickets;
use super::{Cluster, Counters, Service, http2, serve_client};
use crate::client::Ends;
use crate::privileges::{self, Account};
use crate::redirect::{self, Redirect};

/// The protocols that clients are offered (RFC 7301), the favourite first.
const PROTOCOLS: &[&[u8]] = &[http2::PROTOCOL, b"http/1.1"];
const PROTOCOLS_WITHOUT_HTTP2: &[&[u8]] = &[b"http/1.1"];

/// What to do if another program listens where the agent is to listen.
const OF_TLS: &str =
    "with tls = \"terminate\" the agent itself listens there, so end what listens there now";
const OF_REDIRECTS: &str = "with redirect = \"https\" the agent itself listens there, so end what \
    listens there now, or have it listen at another port";

/// The daemon is told the counters this often.
const COUNT: Duration = Duration::from_millis(500);

/// The time between two looks whether a new ticket key is due, or an old one is to be forgotten.
const LOOK: Duration = Duration::from_secs(10);

/// The socket of the daemon, in the folder that it has for the process.
pub const DAEMON: &str = "daemon.sock";
/// The socket of a process for its successor, in the same folder.
pub const SUCCESSORS: &str = "successors.sock";

/// Runs the process to its end, as this user. Both sockets are in `directory`. The process begins there, because its user
/// may not pass through the folders above.
///
/// # Errors
/// [`Error::System`], if it cannot begin.
pub fn run(directory: &Path, account: &Account) -> Result<()> {
    env::set_current_dir(directory).map_err(Error::system("enter the folder of the TLS agent"))?;
    // What ends the daemon with its session, or its terminal, does not end this process.
    setsid().map_err(|error| Error::system("begin a session of its own")(error.into()))?;
    privileges::reduce(account).map_err(Error::system("give up privileges"))?;
    let runtime = runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(Error::system("start the threads of the TLS agent"))?;
    let running = async {
        let predecessor = Predecessor::find(SUCCESSORS.as_ref()).await;
        let (told, orders) = mpsc::unbounded_channel();
        let (tickets, ticket_keys) = Tickets::new();
        let daemon = Daemon::connect(DAEMON.into(), build(), told, ticket_keys);
        let agent = Agent::new(tickets, predecessor, daemon);
        serve(agent, orders).await;
    };
    // As a task of its own it needs no switch to the thread that waits for it.
    let ended = runtime.block_on(async { tokio::spawn(running).await });
    ended.map_err(|error| Error::system("go on with the TLS agent")(error.into()))
}

/// What tells this program from another build of it: device, inode and time of its file.
pub fn build() -> String {
    use std::os::unix::fs::MetadataExt as _;
    let file = std::fs::metadata("/proc/self/exe");
    file.map_or_else(
        |error| error.to_string(),
        |file| {
            format!(
                "{}:{}:{}.{}",
                file.dev(),
                file.ino(),
                file.mtime(),
                file.mtime_nsec()
            )
        },
    )
}

/// Follows the daemon's orders until a successor comes. Then serves the connections that are left.
async fn serve(mut agent: Agent, mut orders: mpsc::UnboundedReceiver<ToAgent>) {
    let mut count = interval(COUNT);
    // Until the first order the daemon may still tell of a key with which the process goes on.
    let mut look = interval_at(Instant::now() + LOOK, LOOK);
    let (mut successors, mut successor) = (None, None);
    loop {
        tokio::select! {
            Some(order) = orders.recv() => match order {
                ToAgent::End => return,
                ToAgent::Serve(settings, files) => {
                    agent.tickets.renew();
                    let report = agent.follow(settings, &files);
                    if successors.is_none() && matches!(report, Report::Applied { .. }) {
                        agent.retire_predecessor().await;
                        successors = expect_successors();
                    }
                    agent.daemon.say(FromAgent::Report(report)).await;
                }
                message => agent.hear(message).await,
            },
            _ = count.tick() => agent.look_after(),
            _ = look.tick() => agent.tickets.renew(),
            come = accept_successor(successors.as_ref()) => successor = agent.hand_over(come),
            serves = successor_serves(&mut successor) => match serves {
                true => break,
                false => successor = None,
            },
        }
    }
    agent.services.stop();
    agent.redirects.stop();
    loop {
        tokio::select! {
            ended = agent.serving.join_next() => if ended.is_none() {
                return;
            },
            Some(order) = orders.recv() => match order {
                ToAgent::End => return,
                message => agent.hear(message).await,
            },
            _ = count.tick() => agent.look_after(),
            _ = look.tick() => agent.tickets.forget(),
        }
    }
}

/// Passes the requests of another data server's agent on to the server here, and its answers back. If one side breaks,
/// so does the other.
async fn relay(daemon: &Daemon, number: u64, service: &Service, ends: Ends) -> io::Result<()> {
    let mut agent = daemon.relayed(number).await?;
    let mut server = service.server.connect(ends).await?;
    copy_bidirectional(&mut agent, &mut server).await.map(drop)
}

/// Listens for a successor. Without that, a successor finds the services' addresses taken, and says so.
fn expect_successors() -> Option<UnixListener> {
    // A predecessor that was killed has left it.
    let _ = std::fs::remove_file(SUCCESSORS);
    UnixListener::bind(SUCCESSORS)
        .inspect_err(|error| {
            tracing::warn!(%error, "the TLS agent cannot listen for a successor");
        })
        .ok()
}

/// The services that are served.
struct Agent {
    services: Listeners<Arc<Service>>,
    redirects: Listeners<Redirect>,
    serving: JoinSet<()>,
    counters: Arc<Counters>,
    redirected: Arc<redirect::Counters>,
    tickets: Tickets,
    /// The process from which this one takes over, until it has.
    predecessor: Option<Predecessor>,
    daemon: Daemon,
    judge: Judge,
    kept: Kept,
    arrivals: Arrivals,
    kinds: Kinds,
    leave: watch::Sender<()>,
}

impl Agent {
    fn new(tickets: Tickets, predecessor: Option<Predecessor>, daemon: Daemon) -> Self {
        Self {
            services: Listeners::new("TLS", OF_TLS),
            redirects: Listeners::new("HTTP", OF_REDIRECTS),
            serving: JoinSet::new(),
            counters: Arc::default(),
            redirected: Arc::default(),
            tickets,
            predecessor,
            daemon,
            judge: Judge::default(),
            kept: Kept::default(),
            arrivals: Arrivals::default(),
            kinds: Kinds::default(),
            leave: watch::Sender::default(),
        }
    }

    /// Expects a connection that moves here; `None` if it cannot go on here.
    fn expect(&self, moving: &Moving) -> Option<Arrival> {
        self.services.settings(moving.ends.cluster)?;
        let state = State::unpack(&moving.state).ok()?;
        Some(self.arrivals.expect(moving.ends, state))
    }

    /// Hears what the daemon says without being asked, except for orders.
    async fn hear(&self, message: ToAgent) {
        match message {
            ToAgent::Take(number, moving) => {
                let arrival = self.expect(&moving);
                // The answer says as well that an earlier session of the connection is forgotten.
                let taken = FromAgent::Taken(number, arrival.is_some());
                self.daemon.say(taken).await;
                if let Some(arrival) = arrival {
                    let daemon = self.daemon.clone();
                    tokio::spawn(async move {
                        let arrived = FromAgent::Arrived(number, arrival.has_come().await);
                        daemon.say(arrived).await;
                    });
                }
            }
            ToAgent::Relay(number, ends) => {
                if let Some(service) = self.services.settings(ends.cluster) {
                    let (daemon, counters) = (self.daemon.clone(), Arc::clone(&self.counters));
                    tokio::spawn(async move {
                        counters.relays.fetch_add(1, Relaxed);
                        if let Err(error) = relay(&daemon, number, &service, ends).await {
                            tracing::debug!(?ends, %error, "requests of another data server's agent broke off");
                        }
                    });
                }
            }
            ToAgent::TicketKeys(ring) => self.tickets.hear(ring),
            ToAgent::Rules(rules) => self.judge.follow(rules),
            ToAgent::Choices(pool, choices) => self.judge.choose_among(pool, &choices),
            ToAgent::Leave => self.leave.send_replace(()),
            // The daemon's answers go to those who have asked.
            ToAgent::Serve(..) | ToAgent::End | ToAgent::Stays(_) => {}
        }
    }

    /// Does what is to be done now and then.
    fn look_after(&self) {
        self.kept.forget();
        let counters = [self.counters.all(), self.redirected.all()].concat();
        let counters = counters
            .into_iter()
            .map(|(name, count)| (name.to_owned(), count));
        let counts = counters.chain(self.kinds.all()).collect();
        self.daemon.tell(FromAgent::Counted(counts));
    }

    /// Serves these services from now on. If one cannot be served, all stays as it was.
    fn follow(&mut self, settings: Settings, files: &[PemFile]) -> Report {
        let (mut warnings, mut certificates) = (Vec::new(), Vec::new());
        match self.try_follow(settings, files, &mut warnings, &mut certificates) {
            Ok(()) => Report::Applied {
                warnings,
                certificates,
            },
            Err(why) => Report::Refused { why },
        }
    }

    fn try_follow(
        &mut self,
        settings: Settings,
        files: &[PemFile],
        warnings: &mut Vec<String>,
        certificates: &mut Vec<Certificate>,
    ) -> std::result::Result<(), String> {
        let redirects = settings.redirects.into_iter().map(|wanted| Wanted {
            name: wanted.name,
            address: wanted.address,
            settings: Redirect {
                https_port: wanted.https_port,
                head_timeout: wanted.head_timeout,
            },
        });
        let mut services = Vec::new();
        for wanted in settings.services {
            let service = self.service(&wanted, files, warnings, certificates);
            let service = service.map_err(|why| format!("service {}: {why}", wanted.name))?;
            services.push(Wanted {
                name: wanted.name,
                address: wanted.address,
                settings: Arc::new(service),
            });
        }
        let predecessor = &mut self.predecessor;
        let redirects = (self.redirects).prepare(redirects.collect(), predecessor)?;
        let services = self.services.prepare(services, predecessor)?;
        let counters = Arc::clone(&self.counters);
        let serve = move |client, service| serve_client(client, service, Arc::clone(&counters));
        self.services.follow(services, &mut self.serving, serve);
        let counters = Arc::clone(&self.redirected);
        let serve =
            move |client, settings| redirect::serve(client, settings, Arc::clone(&counters));
        self.redirects.follow(redirects, &mut self.serving, serve);
        while self.serving.try_join_next().is_some() {}
        Ok(())
    }

    /// Has the process from which this one has taken over accept no more connections.
    async fn retire_predecessor(&mut self) {
        if let Some(predecessor) = self.predecessor.take() {
            predecessor.retire().await;
        }
    }

    /// Gives a successor the sockets that listen. Returns the successor, which is still to say that it serves.
    fn hand_over(&self, successor: UnixStream) -> Option<UnixStream> {
        let sockets = self.services.sockets().chain(self.redirects.sockets());
        match hand_over(&successor, &sockets.collect::<Vec<_>>()) {
            Ok(()) => Some(successor),
            Err(error) => {
                tracing::warn!(%error, "cannot hand over to a successor");
                None
            }
        }
    }

    /// How a service is served, by the files with its certificates.
    fn service(
        &self,
        wanted: &ServiceSettings,
        files: &[PemFile],
        warnings: &mut Vec<String>,
        about: &mut Vec<Certificate>,
    ) -> std::result::Result<Service, String> {
        let content = |path: &PathBuf| files.iter().find(|file| file.file == *path);
        let certificates = Certificates::parse(wanted.certificates.iter().filter_map(content));
        let certificates = certificates.map_err(|error| error.to_string())?;
        about.extend((certificates.about().iter()).map(|one| Certificate::of(&wanted.name, one)));
        let named = |warning| format!("service {}: {warning}", wanted.name);
        warnings.extend(certificates.warnings().iter().map(named));
        // At all data servers the service has this address, which no other service has.
        let address = wanted.address.to_string();
        let tickets = self.tickets.keys();
        let protocols = match wanted.http2 {
            true => PROTOCOLS,
            false => PROTOCOLS_WITHOUT_HTTP2,
        };
        let acceptor = Acceptor::new(certificates, protocols, tickets, address.as_bytes());
        Ok(Service {
            acceptor: acceptor.map_err(|error| error.to_string())?,
            server: Arc::new(LocalServer::new(
                &wanted.name,
                wanted.server.clone(),
                wanted.mark,
                Arc::clone(&self.counters),
            )),
            head_timeout: wanted.head_timeout,
            kernel_tls: wanted.kernel_tls,
            cluster: wanted.has_routes.then(|| Cluster {
                judge: self.judge.clone(),
                daemon: self.daemon.clone(),
                kept: self.kept.clone(),
            }),
            arrivals: self.arrivals.clone(),
            hsts: wanted.hsts.clone(),
            kinds: self.kinds.clone(),
            leave: self.leave.subscribe(),
        })
    }
}
