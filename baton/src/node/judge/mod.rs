//! The judge: decides the requests that the program cannot, by rules or by asking a dispatcher on another
//! node, and sends each on through the program. It has a thread of its own, so that nothing the daemon does
//! delays a request.

mod bench;
mod question;

use std::{
    collections::{HashMap, HashSet},
    net::Ipv4Addr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use anyhow::{Context, Result};
use baton_abi::{LCCP_BEGINS, LCCP_REPLY, Pool};
use baton_core::{
    asker::Counts,
    rules::{Request, Rules},
};
use baton_dataplane::{Dataplane, Lead};
use baton_net::LccpSocket;
use baton_wire::{Address, HashKey, KeyRing, Message, NodePair, PathHash, Query, encode};
use tracing::warn;

use self::bench::Bench;
use super::{
    egress::Egress, heartbeat::clock_now, locked::locked, place::Place, segments::Segments,
};

/// What it judges by: all of it replaced at once.
#[derive(Clone, Debug)]
pub struct Docket {
    /// They lead to numbers of routes.
    pub rules: Rules,
    /// Where each route leads, by its number.
    pub leads: HashMap<u16, Lead>,
    /// Services, by id, whose requests are for their pools alone.
    pub strict: HashSet<u16>,
    /// Services, by id, that a dispatcher on another node chooses for.
    pub asks: HashMap<u16, Asks>,
    /// Indices of data servers.
    pub servers: HashMap<Address, u16>,
    pub keys: KeyRing,
    pub hash_key: HashKey,
    pub clock_window: Duration,
    pub patience: Duration,
}

impl Docket {
    /// Where the rules lead a request.
    fn lead(&self, service: u16, request: &Request) -> Option<Lead> {
        let route = self.rules.pool(service, request)?;
        self.leads.get(&route).copied()
    }

    /// Index of a data server that a dispatcher names, if it is in this pool.
    pub fn named(&self, server: Address, pool: &Pool) -> Option<u16> {
        let index = self.servers.get(&server).copied();
        index.filter(|index| pool.has(*index))
    }

    /// QUERY, as it leaves for its dispatcher.
    pub fn seal(&self, query: Query, pair: NodePair) -> Vec<u8> {
        let key = self.keys.with(pair.to).current;
        encode(&Message::Query(query), &[], clock_now(), &key, pair)
    }
}

/// Whom to ask about a service.
#[derive(Clone, Copy, Debug)]
pub struct Asks {
    pub dispatcher: Ipv4Addr,
    /// Index of the service's own pool.
    pub pool: u16,
}

/// What the daemon holds of it.
#[derive(Default)]
pub struct Judge {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What both threads see.
#[derive(Default)]
struct Shared {
    docket: Mutex<Option<Arc<Docket>>>,
    counts: Mutex<Counts>,
    ends: AtomicBool,
}

impl Judge {
    /// Lets it judge from now on what comes to this node.
    pub fn start(&mut self, dataplane: &Dataplane, place: &Place) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot make the runtime of the thread that judges requests")?;
        let bench = {
            let _guard = runtime.enter();
            let lccp = LccpSocket::open(place.address, place.config.cluster.protocol.number())?;
            lccp.hear_only(&[LCCP_REPLY, LCCP_BEGINS].map(|command| command as u8))?;
            Bench::new(
                dataplane.punts()?,
                Egress::open(&place.links)?,
                Segments::open()?,
                lccp,
                self.shared.clone(),
            )
        };
        let thread = std::thread::Builder::new()
            .name("judge".into())
            .spawn(move || runtime.block_on(bench.serve()))
            .context("cannot start the thread that judges requests")?;
        self.thread = Some(thread);
        Ok(())
    }

    /// Judges by this from now on.
    pub fn follow(&self, docket: Docket) {
        *locked(&self.shared.docket) = Some(Arc::new(docket));
    }

    /// What it judges by, for others to ask.
    pub fn opinion(&self) -> Opinion {
        Opinion(Arc::clone(&self.shared))
    }

    /// What came of its questions to dispatchers.
    pub fn counts(&self) -> Counts {
        *locked(&self.shared.counts)
    }
}

/// Where requests go, as the judge would lead them.
#[derive(Clone)]
pub struct Opinion(Arc<Shared>);

impl Opinion {
    /// All that it goes by.
    pub fn docket(&self) -> Option<Arc<Docket>> {
        locked(&self.0.docket).clone()
    }

    /// Of a request to this service: its pool, if not the service's own, and the hash of its path. `None` before anything is
    /// known of routes.
    pub fn of(&self, service: u16, request: &Request) -> Option<(Option<Lead>, Option<u64>)> {
        let docket = self.docket()?;
        let path = request.path().hash(docket.hash_key).map(PathHash::get);
        Some((docket.lead(service, request), path))
    }
}

/// The program is told, and what it has asked before is answered.
impl Drop for Judge {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            warn!("the thread that judged requests had failed");
        }
    }
}
