//! Idle connections of data servers that drain: found by a walk over the TCP table, and released one by one.

use std::{
    os::fd::{AsFd as _, OwnedFd},
    time::Duration,
};

use baton_abi::{IdleFlow, IdleWalk, MAX_DATA_SERVERS};
use libbpf_rs::{MapCore as _, MapHandle};
use zerocopy::IntoBytes as _;

use crate::{
    Dataplane, Error, Resumed, Tick,
    again::{XDP_PASS, XDP_REDIRECT, XDP_TX},
    maps::{map_error, only_on_cs, program_of_cs, read},
    sys,
};

/// Finds and releases them, apart from everything else that the daemon does: a table of a million takes a
/// while.
pub struct Releaser {
    walk: OwnedFd,
    release: OwnedFd,
    pass_up: OwnedFd,
    found: MapHandle,
    interface: u32,
}

/// What one walk found of the data servers that drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Connections that can be released; of more than a walk has room for, the next one finds the rest.
    pub idle: u32,
    /// Those that stay until their clients or servers close them.
    pub pinned: u32,
    /// Those with a response under way, or not long enough without a packet.
    pub busy: u32,
}

impl Dataplane {
    /// For connections that came to this interface. On a connection server only.
    pub fn releaser(&self, interface: u32) -> Result<Releaser, Error> {
        let programs = self.programs();
        let of_cs = |program| program_of_cs("idle_flows", program);
        let found = only_on_cs("idle_flows", &programs.maps.idle_flows)?;
        Ok(Releaser {
            walk: of_cs(&programs.idle)?,
            release: of_cs(&programs.release)?,
            pass_up: of_cs(&programs.pass_up)?,
            found: MapHandle::try_from(found).map_err(failed)?,
            interface,
        })
    }
}

impl Releaser {
    /// Looks for connections of these data servers, by index, without a packet for `quiet`.
    pub fn walk(&self, draining: &[u16], quiet: Duration) -> Result<Walked, Error> {
        let mut walk = IdleWalk {
            quiet_ticks: Tick::from(quiet).0,
            ..IdleWalk::default()
        };
        for server in draining
            .iter()
            .filter(|s| u32::from(**s) < MAX_DATA_SERVERS)
        {
            walk.draining[usize::from(server / 64)] |= 1 << (server % 64);
        }
        sys::run_on_argument(self.walk.as_fd(), walk.as_mut_bytes()).map_err(|cause| {
            Error::Run {
                program: "idle",
                cause,
            }
        })?;
        Ok(Walked {
            idle: walk.idle,
            pinned: walk.pinned,
            busy: walk.busy,
        })
    }

    /// The next one that a walk has found.
    pub fn next(&self) -> Result<Option<IdleFlow>, Error> {
        let found = self.found.lookup_and_delete(&[]).map_err(failed)?;
        found.map(|bytes| read("idle_flows", &bytes)).transpose()
    }

    /// Has the program make RELEASE of an empty ACK in the client's name, a whole frame.
    pub fn release(&self, ack: &[u8]) -> Result<Resumed, Error> {
        let run = |cause| Error::Run {
            program: "release",
            cause,
        };
        let outcome =
            sys::run_on_arrival(self.release.as_fd(), &[], ack, self.interface).map_err(run)?;
        match outcome.verdict {
            XDP_TX | XDP_REDIRECT => Ok(Resumed::Leaves(outcome.frame)),
            XDP_PASS => {
                sys::run_live(self.pass_up.as_fd(), &[], &outcome.frame, self.interface)
                    .map_err(run)?;
                Ok(Resumed::Done)
            }
            _ => Ok(Resumed::Dropped),
        }
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    map_error("idle_flows", error)
}
