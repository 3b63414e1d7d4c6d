//! The application node's end of its channel to the I/O server.

mod listening;
mod state;
mod wanted;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use baton_saps_protocol::wire::{Errno, Side, TakenPort, Way};
use baton_saps_protocol::{Counters, Gauges};
use baton_wire::ClusterKey;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

pub use self::listening::Listening;
use self::state::AgentState;
use crate::events::Events;
use crate::network::{ForwardingNetwork, network};
use crate::shared::{Shared, error};
use crate::{Connected, Family, NetworkKind, SocketOptions, VirtualStream, link};

/// How long a program's request waits until the I/O server can be reached.
const PATIENCE: Duration = Duration::from_secs(5);

/// The pause after the first attempt to make a channel that failed. Each further pause is twice as long, up to a limit.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The number of connections that may wait to be accepted, for each listener.
const BACKLOG: usize = 4096;

/// The settings of an agent.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// The name of this node, as in `baton.toml`.
    pub node: String,
    /// The I/O server: the node's own address, with the port of `[forwarding]`.
    pub io_server: SocketAddr,
    /// The network that carries the channel.
    pub network: NetworkKind,
    /// The cluster's secret; both ends prove that they know it.
    pub key: ClusterKey,
    /// The secret before it, which is accepted as well while keys are being rotated.
    pub previous_key: Option<ClusterKey>,
    /// B_r: how many bytes of a connection are buffered here for its program.
    pub buffer: u32,
}

/// An application node's end of its channel. It is a handle: clones stand for the same agent. When the last clone and
/// every listener are dropped, the channel ends, and the connections that are left end with it.
#[derive(Clone, Debug)]
pub struct Agent {
    state: Arc<AgentState>,
}

/// The state of one channel, for `baton status` and the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelReport {
    /// The name of the node at the other end. An [`Agent`] gives the I/O server's IP address instead.
    pub node: String,
    /// The address of the node at the other end.
    pub address: SocketAddr,
    /// Whether the channel is up.
    pub is_up: bool,
    /// The channel's counters.
    pub counters: Counters,
    /// The channel's gauges.
    pub gauges: Gauges,
}

impl Agent {
    /// Connects to the I/O server, and again whenever the channel is lost. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// An error if the network cannot be set up on this host.
    pub fn start(settings: AgentSettings) -> io::Result<Self> {
        let network = network(
            settings.network,
            &settings.key,
            settings.previous_key.as_ref(),
        )?;
        let (shared, events) = Shared::new(Side::Application, &settings.node, settings.buffer);
        let failed: Arc<AtomicU64> = Arc::default();
        let keep = keep(
            network,
            settings.io_server,
            Arc::clone(&shared),
            Arc::clone(&failed),
        );
        let state = Arc::new(AgentState {
            io_server: settings.io_server,
            shared,
            failed,
            wanted: Mutex::default(),
            changes: watch::Sender::new(0),
            taken: watch::Sender::default(),
            tasks: Mutex::default(),
        });
        {
            let mut tasks = state.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            tasks.spawn(keep);
            tasks.spawn(watch_events(Arc::downgrade(&state), events));
        }
        Ok(Self { state })
    }

    /// Listens on every cluster address of the IP versions in `family`. With port 0 the I/O server chooses a port.
    ///
    /// # Errors
    /// The error of bind(2) or listen(2) at the I/O server, as an OS error ([`io::Error::raw_os_error`]); EADDRINUSE if
    /// another program of this node has the port; ENETDOWN if the I/O server could not be reached.
    pub async fn listen(&self, port: u16, family: Family) -> io::Result<Listening> {
        let (sender, queue) = mpsc::channel(BACKLOG);
        let mut changes = self.state.changes.subscribe();
        let key = self.state.wanted().add(port, family, sender);
        let key = key.map_err(error)?;
        // From here on, dropping `listening` gives the port up.
        let mut listening = Listening {
            port,
            key,
            queue,
            agent: Arc::clone(&self.state),
        };
        self.state.ask(key);
        let answered = async {
            loop {
                let answer = self.state.wanted().answer(key);
                if let Some(answer) = answer {
                    return answer;
                }
                // The sender lives as long as `self`.
                let _ = changes.changed().await;
            }
        };
        let answer = timeout(PATIENCE, answered).await;
        let answer = answer.unwrap_or(Err(Errno::NETWORK_DOWN));
        listening.port = answer.map_err(error)?;
        Ok(listening)
    }

    /// Connects to `to` from the cluster address.
    ///
    /// # Errors
    /// The error of connect(2) at the I/O server, as an OS error ([`io::Error::raw_os_error`]); ENETDOWN if the I/O
    /// server could not be reached.
    pub async fn connect(&self, to: SocketAddr, options: SocketOptions) -> io::Result<Connected> {
        let mut changes = self.state.changes.subscribe();
        let up = async {
            while !self.state.is_up() {
                let _ = changes.changed().await;
            }
        };
        (timeout(PATIENCE, up).await).map_err(|_| error(Errno::NETWORK_DOWN))?;
        let way = Way::Out {
            to: to.into(),
            options,
        };
        let (stream, local) = VirtualStream::make(&self.state.shared, way, Weak::new())
            .await
            .map_err(error)?;
        Ok(Connected {
            local: local.into(),
            stream,
        })
    }

    /// The ports that no program can listen on: the current ones, and each change. The list is empty while the I/O
    /// server cannot be reached.
    pub fn taken(&self) -> watch::Receiver<Box<[TakenPort]>> {
        self.state.taken.subscribe()
    }

    /// How often the channel could not be made: the I/O server did not answer, or did not know the cluster key.
    pub fn failed(&self) -> u64 {
        self.state.failed.load(Ordering::Relaxed)
    }

    /// The state of the channel.
    pub fn report(&self) -> ChannelReport {
        let AgentState {
            io_server, shared, ..
        } = &*self.state;
        ChannelReport {
            node: io_server.ip().to_string(),
            address: *io_server,
            is_up: self.state.is_up(),
            counters: shared.counters(),
            gauges: shared.gauges(),
        }
    }

    /// The ports that programs listen on, each with whether the I/O server listens on it.
    pub fn ports(&self) -> Vec<(u16, Family, bool)> {
        self.state.wanted().ports()
    }
}

/// Makes a channel again whenever it is lost.
async fn keep(
    network: Arc<dyn ForwardingNetwork>,
    to: SocketAddr,
    shared: Arc<Shared>,
    failed: Arc<AtomicU64>,
) {
    let mut pause = FIRST_PAUSE;
    let mut is_told = false;
    loop {
        match network.connect(to).await {
            Ok(link) => {
                tracing::info!(%to, "the channel to the I/O server is up");
                let error = link::run(&shared, link, || pause = FIRST_PAUSE).await;
                tracing::warn!(%to, %error, "the channel to the I/O server is lost");
                is_told = false;
            }
            Err(error) => {
                failed.fetch_add(1, Ordering::Relaxed);
                if !std::mem::replace(&mut is_told, true) {
                    tracing::warn!(%to, %error, "the I/O server cannot be reached; trying again");
                }
            }
        }
        // Not all nodes try at the same time.
        tokio::time::sleep(pause.mul_f64(1.0 - fastrand::f64() / 2.0)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn watch_events(agent: Weak<AgentState>, mut events: Events) {
    while let Some(event) = events.recv().await {
        let Some(agent) = agent.upgrade() else {
            return;
        };
        agent.handle(event);
        agent.changes.send_modify(|count| *count += 1);
    }
}
