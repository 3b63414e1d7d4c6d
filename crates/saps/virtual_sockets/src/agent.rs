//! The agent of a control group's programs: it hears of their sockets and joins each connection to its far end. The agent
//! of a data server (`crates/agent`) is another one.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use baton_dataplane::{App, AppEvent, AppEvents, AppListener, AppMaps, AppTaken, Pins};
use tokio::{
    sync::{mpsc, watch},
    task::AbortHandle,
};
use tracing::warn;

use crate::{
    Counters, Error, Family, Far, Group, RefusedPorts, Result, TakenPort,
    arrivals::{self, port_of},
    calls::{BegunCalls, Calls},
    port::AgentPort,
    shared::Shared,
};

/// How long one sign of life of the agent holds. Without a newer one connect() fails at once with ENETUNREACH, so that no
/// program waits for an agent that is gone.
const SIGN_HOLDS: Duration = Duration::from_secs(5);
/// The time between two signs of life. As often the listeners are looked at, because events about them may have been
/// lost.
const SIGN: Duration = Duration::from_millis(250);

/// The settings of an agent.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The control group of its programs.
    pub group: Group,
    /// Where programs, maps and links are kept while no agent runs. `None`: they end with the agent (tests).
    pub pins: Option<Pins>,
    /// The cluster addresses.
    pub cluster: Vec<IpAddr>,
    /// Networks that programs reach without the I/O server, such as the forwarding network: address and prefix length.
    pub direct: Vec<(IpAddr, u8)>,
}

/// An agent whose hooks are in place.
pub struct Agent {
    app: App,
    maps: Arc<AppMaps>,
    port: AgentPort,
    settings: Settings,
    counters: Arc<Counters>,
    refused: Arc<RefusedPorts>,
    begun: Arc<BegunCalls>,
}

impl Agent {
    /// Makes the control group and attaches the hooks to it, or takes over what an earlier agent left.
    ///
    /// # Errors
    /// [`Error`] if the hooks cannot be loaded or attached, or the control group or the agent's port is not available.
    pub fn start(settings: Settings) -> Result<Self> {
        let app = App::load(settings.pins.as_ref())?;
        Self::start_with(app, settings)
    }

    /// Does the same as [`Agent::start`] for programs that listen where they say: only connections that they make have
    /// their far end elsewhere.
    ///
    /// # Errors
    /// [`Error`] if the hooks cannot be loaded or attached, or the control group or the agent's port is not available.
    pub fn start_for_calls(settings: Settings) -> Result<Self> {
        let mut app = App::load(settings.pins.as_ref())?;
        app.only_calls();
        Self::start_with(app, settings)
    }

    fn start_with(mut app: App, settings: Settings) -> Result<Self> {
        settings.group.create()?;
        let maps = Arc::new(app.maps()?);
        maps.set_cluster(&settings.cluster)?;
        maps.set_direct(&settings.direct)?;
        let port = AgentPort::take(maps.agent_port()?)?;
        maps.give_sign(port.number(), SIGN_HOLDS)?;
        app.attach(settings.group.path(), settings.pins.as_ref())?;
        Ok(Self {
            app,
            maps,
            port,
            settings,
            counters: Arc::default(),
            refused: Arc::default(),
            begun: Arc::default(),
        })
    }

    /// The agent's counters, which stay readable while it runs.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// The ports that programs listen on and the I/O server does not. The list stays readable while the agent runs.
    pub fn refused(&self) -> Arc<RefusedPorts> {
        Arc::clone(&self.refused)
    }

    /// Sets the networks that programs reach without the I/O server, from their next call on.
    ///
    /// # Errors
    /// [`Error::Dataplane`] if the map cannot be written.
    pub fn set_direct(&self, networks: &[(IpAddr, u8)]) -> Result<()> {
        Ok(self.maps.set_direct(networks)?)
    }

    /// The maps that the agent shares with the hooks. They hold the hooks' counters.
    ///
    /// # Errors
    /// [`Error::Dataplane`] if the maps cannot be opened.
    pub fn maps(&self) -> Result<AppMaps> {
        Ok(self.app.maps()?)
    }

    /// Serves the programs until dropped; connections that exist by then go on. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error`] if the agent cannot begin, or no longer hears of the programs.
    pub async fn serve<F: Far>(&self, far: F) -> Result<()> {
        let mut events = follow(
            self.app.events()?,
            Arc::clone(&self.maps),
            self.port.number(),
        )?;
        let mut taken = far.taken();
        self.refuse(&taken.borrow_and_update());
        let (known, listeners) = watch::channel(Vec::new());
        let shared = Arc::new(Shared {
            far,
            maps: Arc::clone(&self.maps),
            counters: Arc::clone(&self.counters),
            refused: Arc::clone(&self.refused),
            setters: Arc::default(),
            listeners,
        });
        let calls = Calls::new(
            Arc::clone(&shared),
            Arc::clone(&self.begun),
            self.port.number(),
        );
        let mut ports = Ports::default();
        // The first look finds the programs that listened before this agent began.
        let mut look = true;
        loop {
            if look {
                match self.maps.listeners() {
                    Ok(all) => ports.follow(all, &known, &shared),
                    Err(error) => {
                        warn!("cannot look at the programs' listeners; trying again: {error}")
                    }
                }
            }
            let event = tokio::select! {
                event = events.receiver.recv() => event,
                Ok(()) = taken.changed() => {
                    self.refuse(&taken.borrow_and_update());
                    look = false;
                    continue;
                }
            };
            let Some(event) = event else {
                return Err(Error::System {
                    doing: "read the events of the programs' sockets".into(),
                    cause: std::io::ErrorKind::BrokenPipe.into(),
                });
            };
            look = matches!(event, AppEvent::Listeners);
            match event {
                AppEvent::Call(call) => calls.begin(call),
                AppEvent::CallEnded { cookie } => calls.end(cookie),
                AppEvent::Listeners => {}
                AppEvent::Options {
                    connection,
                    options,
                } => shared.setters.set(connection, options),
                AppEvent::BindTaken { wanted } => warn!(
                    port = wanted.port(),
                    "a program was refused bind() to {wanted} with EADDRINUSE: at the I/O server another program uses the port; see `ss -ltnp` there"
                ),
            }
        }
    }

    /// Whether a connection that a program makes or has made has not ended yet. A program may have ended before its
    /// connection: what it has written is still on its way.
    pub fn is_busy(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Sets the ports that programs cannot bind to from this point on.
    fn refuse(&self, taken: &[TakenPort]) {
        let ports = taken.iter().map(|taken| AppTaken {
            port: taken.port,
            v4: taken.families != Family::V6,
            v6: taken.families != Family::V4,
        });
        if let Err(error) = self.maps.set_taken(&ports.collect::<Vec<_>>()) {
            warn!("cannot tell the hooks which ports are taken: {error}");
        }
    }

    /// Restores the node: removes hooks, pins and control group. Goes on past errors and returns them all. Programs
    /// that run go on without the cluster.
    pub fn take_down(mut self) -> Vec<Error> {
        self.app.release();
        take_back(&self.settings.group, self.settings.pins.as_ref())
    }
}

/// Removes the pins and the control group that a killed agent left. Returns all errors.
pub fn take_back(group: &Group, pins: Option<&Pins>) -> Vec<Error> {
    let mut errors: Vec<Error> = pins
        .map(|pins| pins.remove().into_iter().map(Into::into).collect())
        .unwrap_or_default();
    errors.extend(group.remove().err());
    errors
}

/// The ports that the I/O server is asked to listen on, each with its task.
#[derive(Default)]
struct Ports {
    tasks: BTreeMap<(u16, Family), AbortHandle>,
}

impl Ports {
    fn follow<F: Far>(
        &mut self,
        listeners: Vec<AppListener>,
        known: &watch::Sender<Vec<AppListener>>,
        shared: &Arc<Shared<F>>,
    ) {
        let wanted: BTreeSet<_> = listeners.iter().map(port_of).collect();
        known.send_replace(listeners);
        self.tasks.retain(|port, task| {
            let stays = wanted.contains(port);
            if !stays {
                task.abort();
            }
            stays
        });
        for (port, family) in wanted {
            self.tasks.entry((port, family)).or_insert_with(|| {
                let serve = arrivals::serve(Arc::clone(shared), port, family);
                tokio::spawn(serve).abort_handle()
            });
        }
    }
}

impl Drop for Ports {
    fn drop(&mut self) {
        self.tasks.values().for_each(AbortHandle::abort);
    }
}

/// The events from the thread that waits for the kernel. Dropping this ends the thread.
struct Following {
    receiver: mpsc::UnboundedReceiver<AppEvent>,
    ended: Arc<AtomicBool>,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// Reads the events on a thread of its own, which also gives the agent's signs of life.
fn follow(events: AppEvents, maps: Arc<AppMaps>, port: u16) -> Result<Following> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let ended = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&ended);
    // A ring may have one reader, so this thread owns it.
    let work = move || {
        let mut signed = std::time::Instant::now();
        while !stop.load(Ordering::Relaxed) {
            match events.wait(SIGN) {
                // Sending fails only if the receiver is gone, and then `stop` ends this thread.
                Ok(some) => some.for_each(|event| {
                    let _ = sender.send(event);
                }),
                Err(error) => {
                    warn!("cannot read the events of the programs' sockets: {error}");
                    return;
                }
            }
            if signed.elapsed() >= SIGN && !stop.load(Ordering::Relaxed) {
                signed = std::time::Instant::now();
                let _ = sender.send(AppEvent::Listeners);
                if let Err(error) = maps.give_sign(port, SIGN_HOLDS) {
                    warn!("cannot give a sign of life, without which calls are refused: {error}");
                }
            }
        }
    };
    let builder = thread::Builder::new().name("app-events".into());
    builder
        .spawn(work)
        .map_err(Error::system("start a thread"))?;
    Ok(Following { receiver, ended })
}
