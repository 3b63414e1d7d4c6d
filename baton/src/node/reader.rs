//! The agent that reads requests of services whose owners route them.

use std::{
    collections::{HashMap, HashSet},
    io,
    net::SocketAddrV4,
    os::fd::BorrowedFd,
    sync::{Arc, Mutex},
};

use anyhow::Result;
use baton_abi::{Door, HaveRead, TcbKey};
use baton_agent::{
    Services,
    reader::{Counters, Lead, Program, Reader},
};
use baton_core::rules::Request;
use baton_dataplane::{Dataplane, Error, Reading};
use baton_net::Link;
use tokio::sync::watch;

use super::{
    judge::{Judge, Opinion},
    locked::locked,
};

/// One that runs.
pub struct Running {
    /// Where the program finds it, on 127.0.0.1.
    pub port: u16,
    /// What it has done.
    pub counters: Arc<Counters>,
    services: watch::Sender<Services>,
    ids: Arc<Mutex<HashMap<SocketAddrV4, u16>>>,
}

impl Running {
    /// Starts it. Frames come in by this interface.
    pub fn start(dataplane: &Dataplane, link: &Link, judge: &Judge) -> Result<Self> {
        let (services, watch) = watch::channel(HashSet::new());
        let ids = Arc::default();
        let program = Here {
            reading: dataplane.reading(link.index)?,
            mac: link.mac,
            opinion: judge.opinion(),
            ids: Arc::clone(&ids),
        };
        let reader = Reader::bind(Arc::new(program), watch)?;
        let (port, counters) = (reader.port(), reader.counters());
        tokio::spawn(reader.run());
        Ok(Self {
            port,
            counters,
            services,
            ids,
        })
    }

    /// What clients may be going to: by the number that a service has in the maps.
    pub fn serve(&self, services: HashMap<SocketAddrV4, u16>) {
        self.services
            .send_replace(services.keys().copied().collect());
        *locked(&self.ids) = services;
    }
}

/// This node.
struct Here {
    reading: Reading,
    mac: [u8; 6],
    opinion: Opinion,
    ids: Arc<Mutex<HashMap<SocketAddrV4, u16>>>,
}

impl Program for Here {
    fn door(&self, socket: BorrowedFd<'_>, flow: &TcbKey) -> io::Result<Option<Door>> {
        self.reading.door(socket, flow).map_err(other)
    }

    fn lead(&self, cluster: SocketAddrV4, request: &Request) -> Option<Lead> {
        let service = locked(&self.ids).get(&cluster).copied()?;
        let (lead, path) = self.opinion.of(service, request)?;
        Some(Lead {
            pool: lead.map(|lead| lead.pool),
            path,
        })
    }

    fn tell(&self, socket: BorrowedFd<'_>, read: &HaveRead) -> io::Result<()> {
        self.reading.tell(socket, read).map_err(other)
    }

    fn is_passing(&self, flow: &TcbKey, request: u32) -> io::Result<bool> {
        self.reading.is_passing(flow, request).map_err(other)
    }

    fn mac(&self) -> [u8; 6] {
        self.mac
    }

    fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.reading.send(frame).map_err(other)
    }
}

fn other(error: Error) -> io::Error {
    io::Error::other(error)
}
