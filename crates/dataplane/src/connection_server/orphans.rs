//! Finds the entries whose data server is dead, reads them with the requests that are kept for them, and changes them
//! in place. This is for a task beside the daemon's own, because a walk over a million entries takes a while.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use baton_abi::{Change, FindFlows, KeptRequest, MAX_POOLS, ORPHANS, Orphan, Pool, Tcb, TcbKey};
use libbpf_rs::{MapCore as _, MapHandle};
use zerocopy::IntoBytes as _;

use crate::{
    ConnectionServer, Error,
    connection_server::entries::array,
    maps::{again, again_program, element, forget, lookup, update},
    sys,
};

/// The programs and maps by which entries of a dead data server are handled.
pub struct Orphans {
    find_flows: OwnedFd,
    change: OwnedFd,
    pub(crate) moves: OwnedFd,
    orphans: MapHandle,
    kept: MapHandle,
    tcbs: MapHandle,
    pools: MapHandle,
}

impl ConnectionServer {
    /// A second handle to the entries, for a task of its own.
    pub fn orphans(&self) -> Result<Orphans, Error> {
        let program = |program| again_program("orphans", program);
        Ok(Orphans {
            find_flows: program(&self.find_flows)?,
            change: program(&self.change)?,
            moves: program(&self.moves)?,
            orphans: again("orphans", &self.orphans)?,
            kept: again("kept_requests", &self.routing.kept_requests)?,
            tcbs: again("tcbs", &self.tcbs)?,
            pools: again("pools", &self.routing.pools)?,
        })
    }
}

impl Orphans {
    /// The entries of a data server that are not at rest, as far as that data server has told, and the entries that it
    /// was to hand over.
    pub fn find_flows(&self, owner: u16) -> Result<Vec<(TcbKey, Tcb)>, Error> {
        let mut all = Vec::new();
        loop {
            let first = all.len() as u32; // below 2^28, the largest table there is
            let mut find_flows = FindFlows {
                owner: owner.into(),
                first,
                found: 0,
            };
            run(
                "find_flows",
                self.find_flows.as_fd(),
                find_flows.as_mut_bytes(),
            )?;
            let more = find_flows.found.saturating_sub(first).min(ORPHANS);
            for index in 0..more {
                let orphan: Orphan = element("orphans", &self.orphans, index)?;
                all.push((orphan.key, orphan.tcb));
            }
            if more < ORPHANS {
                return Ok(all);
            }
        }
    }

    /// What is kept of the connection's last request, if anything is.
    pub fn kept(&self, key: &TcbKey) -> Result<Option<KeptRequest>, Error> {
        lookup("kept_requests", &self.kept, key)
    }

    /// Keeps a request whose response may go on elsewhere, as its owner has told it.
    pub fn keep(&self, key: &TcbKey, request: &KeptRequest) -> Result<(), Error> {
        update("kept_requests", &self.kept, key, request)
    }

    /// Changes the entry as `change` says, and returns it as it is after the change. `None` if the entry is another
    /// one by now.
    pub fn change(&self, mut change: Change) -> Result<Option<Tcb>, Error> {
        run("change", self.change.as_fd(), change.as_mut_bytes())?;
        Ok((change.found != 0).then_some(change.tcb))
    }

    /// The entry of a connection.
    pub fn tcb(&self, key: &TcbKey) -> Result<Option<Tcb>, Error> {
        lookup("tcbs", &self.tcbs, key)
    }

    /// Forgets a connection. It is no error if the connection is forgotten already.
    pub fn forget(&self, key: &TcbKey) -> Result<(), Error> {
        forget("tcbs", &self.tcbs, key).map(drop)
    }

    /// The pool at an index.
    pub fn pool(&self, index: u16) -> Result<Pool, Error> {
        element("pools", &self.pools, index.into())
    }

    /// The index of the pool whose id has this lower half.
    pub fn pool_with_id(&self, id: u32) -> Result<Option<u16>, Error> {
        let pools: Vec<Pool> = array("pools", &self.pools, MAX_POOLS)?;
        let mut known = (0..).zip(&pools).filter(|(_, pool)| pool.id != 0);
        Ok(known.find_map(|(index, pool)| (pool.id as u32 == id).then_some(index))) // the lower half
    }

    /// How many requests there is room to keep.
    pub fn capacity(&self) -> u32 {
        self.kept.max_entries()
    }
}

pub(crate) fn run(
    name: &'static str,
    program: BorrowedFd<'_>,
    argument: &mut [u8],
) -> Result<(), Error> {
    sys::run_on_argument(program, argument).map_err(|cause| Error::Run {
        program: name,
        cause,
    })
}
