//! The connection server's programs and maps: nothing here exists on a node without that role.

pub mod again;
pub mod entries;
pub mod hold;
pub mod moves;
pub mod orphans;

use std::{
    os::fd::{AsFd as _, OwnedFd},
    sync::Arc,
    time::Duration,
};

use baton_abi::{MAX_DATA_SERVERS, Sweep, Tcb, TcbKey};
use libbpf_rs::{MapCore as _, MapHandle};
use zerocopy::IntoBytes as _;

use crate::{
    Error, Routing, Tick,
    maps::{CommonMaps, element, lookup, update},
    sys,
};

/// The programs and maps of a connection server.
pub struct ConnectionServer {
    /// The XDP program.
    pub xdp: OwnedFd,
    /// The program that expires TCB entries.
    pub sweep: OwnedFd,
    /// The program that finds entries of a dead data server.
    pub find_flows: OwnedFd,
    /// The program that changes one entry of a dead data server.
    pub change: OwnedFd,
    /// The program that moves the response of an entry whose data server drains.
    pub moves: OwnedFd,
    /// The program that passes frames of user space up to the kernel.
    pub pass_up: OwnedFd,
    pub(crate) tcbs: MapHandle,
    pub(crate) flows: MapHandle,
    /// The map with the XDP program's variable `hold`.
    pub(crate) hold: MapHandle,
    pub(crate) held: MapHandle,
    pub(crate) orphans: MapHandle,
    /// This map is only held, because the kernel empties it if nobody holds it.
    pub(crate) _once_more: MapHandle,
    pub(crate) routing: Arc<Routing>,
    pub(crate) common: Arc<CommonMaps>,
}

/// What one sweep of the TCP table found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Entries that stay.
    pub live: u32,
    /// Entries that were too old.
    pub expired: u32,
}

impl ConnectionServer {
    /// The maps that say where first requests go.
    pub fn routing(&self) -> &Routing {
        &self.routing
    }

    /// One entry of the TCP table.
    pub fn tcb(&self, key: &TcbKey) -> Result<Option<Tcb>, Error> {
        lookup("tcbs", &self.tcbs, key)
    }

    /// Writes an entry of the TCP table.
    pub fn set_tcb(&self, key: &TcbKey, tcb: &Tcb) -> Result<(), Error> {
        update("tcbs", &self.tcbs, key, tcb)
    }

    /// How many entries the TCP table has room for.
    pub fn tcb_capacity(&self) -> u32 {
        self.tcbs.max_entries()
    }

    /// Live flows of a data server, as the last sweep counted them.
    pub fn flows(&self, index: u16) -> Result<u32, Error> {
        element("flows", &self.flows, index.into())
    }

    /// Expires TCB entries and counts the live ones of each data server.
    pub fn sweep(&self, idle: Duration, closing: Duration) -> Result<Swept, Error> {
        for index in 0..MAX_DATA_SERVERS {
            update("flows", &self.flows, &index, &0u32)?;
        }
        let mut sweep = Sweep {
            idle_ticks: Tick::from(idle).0,
            closing_ticks: Tick::from(closing).0,
            ..Sweep::default()
        };
        sys::run_on_argument(self.sweep.as_fd(), sweep.as_mut_bytes()).map_err(|cause| {
            Error::Run {
                program: "sweep",
                cause,
            }
        })?;
        Ok(Swept {
            live: sweep.live,
            expired: sweep.expired,
        })
    }
}
