//! The agent that reads requests of services whose owners route them, and what the daemon does for it.

use std::{
    collections::{HashMap, HashSet},
    io,
    net::SocketAddrV4,
    ops::RangeInclusive,
    os::fd::BorrowedFd,
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use baton_abi::{AnswerKey, Door, HaveRead, Kept, TcbKey};
use baton_agent::{
    Services,
    reader::{Asked, Counters, Lead, Program, Protocol, Reader, Route, Served, Store},
};
use baton_core::dispatcher;
use baton_dataplane::{DataServer, Early, Error, Reading};
use baton_net::Connections;
use baton_net::client_frame::{ETHERNET, PIECE, Stream};
use tokio::sync::watch;

use crate::{
    connection_server::segments::{Known, Segments},
    data_server::{
        current_rules::{CurrentRules, RuleReader},
        early_packets, empty_ack,
    },
    dispatcher::client::{DispatcherThread, Question},
    local_node::LocalNode,
    locked::locked,
    logging::logged,
};

/// At most this many bytes of a request are read for a dispatcher, as many as the program reads.
const QUESTION_BYTES: usize = 16 << 10;

/// A connection on which no data was sent or came for this long may have come to rest.
const REST: Duration = Duration::from_secs(1);
/// Each such connection is looked at about this many times, because a message may be lost and the end of a response may
/// be acknowledged late.
const REST_LOOKS: u32 = 3;

/// A running agent.
pub struct Running {
    /// The port on 127.0.0.1 at which the program finds the agent.
    pub port: u16,
    /// The agent's counters.
    pub counters: Arc<Counters>,
    services: watch::Sender<Services>,
    here: Arc<Here>,
}

impl Running {
    /// Starts the agent. Its frames come in by the node's interface.
    pub fn start(
        server: &DataServer,
        local: &LocalNode,
        current_rules: &CurrentRules,
    ) -> Result<Self> {
        let link = &local.link;
        let (services, watch) = watch::channel(HashSet::new());
        let here = Arc::new(Here {
            reading: server.reading(link.index)?,
            mac: link.mac,
            rules: current_rules.reader(),
            served: Mutex::default(),
            leaving: Mutex::new(()),
            segments: Segments::open()?,
            rests: Mutex::default(),
            asking: OnceLock::new(),
        });
        early_packets::start(server.early()?, Arc::downgrade(&here))?;
        let store = Store::open(local.config.local.run_dir.join("kept"))
            .context("cannot make the directory for requests that the agent keeps")?;
        let reader = Reader::bind(here.clone(), watch, store)?;
        let (port, counters) = (reader.port(), reader.counters());
        tokio::spawn(reader.run());
        Ok(Self {
            port,
            counters,
            services,
            here,
        })
    }

    /// Sets the services whose requests the agent reads, by address.
    pub fn serve(&self, services: HashMap<SocketAddrV4, Served>) {
        self.services
            .send_replace(services.keys().copied().collect());
        *locked(&self.here.served) = services;
    }

    /// Begins to ask dispatchers on other nodes about the requests of services that have one. Later calls do nothing.
    pub fn ask_dispatchers(&self, server: &DataServer, local: &LocalNode) -> Result<()> {
        if self.here.asking.get().is_none() {
            let asking = DispatcherThread::start(server, local, self.here.rules.clone())?;
            // Only this function sets it, so it is still empty.
            let _ = self.here.asking.set(asking);
        }
        Ok(())
    }

    /// Returns the counters of the questions to dispatchers.
    pub fn asked(&self) -> dispatcher::Counts {
        (self.here.asking.get()).map_or_else(dispatcher::Counts::default, DispatcherThread::counts)
    }

    /// Has connections on which no data was sent or came for `quiet` leave this data server, if it is no longer a
    /// member of their pools. Returns at once.
    pub fn let_idle_leave(&self, quiet: Duration) {
        let here = self.here.clone();
        tokio::task::spawn_blocking(move || logged(here.let_idle_leave(quiet)));
    }

    /// Has the program tell connection servers which connections have come to rest lately. Returns at once.
    pub fn tell_rests(&self) {
        let here = self.here.clone();
        tokio::task::spawn_blocking(move || logged(here.tell_rests()));
    }
}

/// What the agent and the thread for early packets use of this node.
struct Here {
    reading: Reading,
    mac: [u8; 6],
    rules: RuleReader,
    served: Mutex<HashMap<SocketAddrV4, Served>>,
    /// Held while idle connections are looked at, so that only one look runs at a time.
    leaving: Mutex<()>,
    segments: Segments,
    /// The time of the last look for connections at rest. The lock is held during a look, so only one runs at a time.
    rests: Mutex<Option<Instant>>,
    /// The handle to ask dispatchers, set once a service here has a dispatcher on another node.
    asking: OnceLock<DispatcherThread>,
}

impl Here {
    fn let_idle_leave(&self, quiet: Duration) -> Result<()> {
        let Ok(_alone) = self.leaving.try_lock() else {
            return Ok(());
        };
        for frame in self.idle(quiet..=Duration::MAX)? {
            self.reading.leave(&frame)?;
        }
        Ok(())
    }

    fn tell_rests(&self) -> Result<()> {
        let Ok(mut last) = self.rests.try_lock() else {
            return Ok(());
        };
        let until = last.map_or(Duration::MAX, |last| REST + last.elapsed() * REST_LOOKS);
        *last = Some(Instant::now());
        for frame in self.idle(REST..=until)? {
            self.reading.rest(&frame)?;
        }
        Ok(())
    }

    /// Makes an empty ACK for each connection on which no data was sent or came for a time within `quiet`.
    fn idle(&self, quiet: RangeInclusive<Duration>) -> Result<Vec<Vec<u8>>> {
        // A TLS connection never leaves, and is never at rest.
        let services = (locked(&self.served).iter())
            .filter(|(_, served)| served.protocol == Protocol::Http)
            .map(|(at, _)| *at)
            .collect();
        let idle = Connections::idle(&services, quiet)?.into_iter();
        let frames = idle.filter_map(|(client, cluster)| {
            let flow = TcbKey::of(client, cluster);
            // Only the program knows the sequence and acknowledgement numbers.
            let (seq, ack) = (0, 0);
            empty_ack::ack(&flow, (seq, ack), self.mac)
        });
        Ok(frames.collect())
    }
}

impl early_packets::Sender for Here {
    fn send_early(&self, early: &Early) -> Result<()> {
        let (client, cluster) = early.flow.ends();
        let stream = Stream {
            mac: self.mac,
            client,
            cluster,
            ack: early.ack,
            window: early.window,
            // The program knows the timestamp to be echoed.
            stamps: early.tsval.map(|tsval| (tsval, 0)),
        };
        for (_, frame) in stream.frames(early.seq, &early.bytes, PIECE, early.ends) {
            self.reading.send_early(&frame)?;
        }
        Ok(())
    }

    fn probe_client(&self, known: &Known) -> Result<()> {
        self.segments.probe(known)
    }

    fn ask(&self, key: AnswerKey, early: &Early) {
        let (_, cluster) = early.flow.ends();
        let service = self.served(cluster);
        let (Some(asking), Some(service)) = (self.asking.get(), service) else {
            return;
        };
        let bytes = early.bytes.len().min(QUESTION_BYTES);
        asking.ask(Question {
            key,
            flow: early.flow,
            service: service.id,
            text: early.bytes[..bytes].to_owned(),
        });
    }
}

impl Program for Here {
    fn door(&self, socket: BorrowedFd<'_>, flow: &TcbKey) -> io::Result<Option<Door>> {
        self.reading.door(socket, flow).map_err(other)
    }

    fn served(&self, cluster: SocketAddrV4) -> Option<Served> {
        locked(&self.served).get(&cluster).copied()
    }

    fn lead(&self, service: u16, asked: &Asked) -> Option<Lead> {
        let (lead, path) = match asked {
            Asked::Http(request) => self.rules.of(service, request)?,
            Asked::Tls(hello) => (self.rules.of_tls(service, hello)?, None),
        };
        Some(Lead {
            route: lead.map(|lead| Route {
                number: lead.route,
                pool: lead.pool,
            }),
            path,
        })
    }

    fn tell(&self, socket: BorrowedFd<'_>, read: &HaveRead) -> io::Result<()> {
        self.reading.tell(socket, read).map_err(other)
    }

    fn keep(&self, flow: &TcbKey, begin: u32) -> io::Result<()> {
        self.reading.keep(flow, begin).map_err(other)
    }

    fn kept(&self, flow: &TcbKey) -> io::Result<Option<Kept>> {
        self.reading.kept(flow).map_err(other)
    }

    fn mac(&self) -> [u8; 6] {
        self.mac
    }

    fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.reading.send(frame).map_err(other)
    }

    fn probe(&self, frame: &[u8]) -> io::Result<()> {
        let packet = frame.get(ETHERNET..).unwrap_or_default();
        self.segments.probe_sender(packet).map_err(io::Error::other)
    }
}

fn other(error: Error) -> io::Error {
    io::Error::other(error)
}
