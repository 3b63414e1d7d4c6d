//! First requests that wait at a connection server because another one is about to take over (`bpf/connection_server/begin/hold.h`).

use std::time::Duration;

use baton_abi::{DataServer, Hold as InMap};
use libbpf_rs::MapHandle;

use crate::{
    ConnectionServer, Error,
    clock::coarse_after,
    connection_server::again::{Again, Resumed},
    maps::{again, update},
    ring::{Held, Ring, read_held},
};

/// Whoever has it lets requests wait, and lets them go: at most one may be in use.
pub struct Hold {
    variable: MapHandle,
    held: Ring<Held>,
    again: Again,
}

impl ConnectionServer {
    /// The hold on the requests that come here.
    pub fn hold(&self) -> Result<Hold, Error> {
        let held = Ring::of("held", &self.held, read_held)?;
        // What waited for an earlier daemon its clients send again.
        held.wait(Duration::ZERO)?.for_each(drop);
        Ok(Hold {
            variable: again("hold", &self.hold)?,
            held,
            again: self.again()?,
        })
    }

    /// Nothing waits here or is passed on any more: this connection server is the one that clients come to.
    pub fn end_hold(&self) -> Result<(), Error> {
        write(&self.hold, &InMap::default())
    }
}

impl Hold {
    /// Has requests wait from now on, for so long at most. What else comes goes on.
    pub fn begin(&self, time: Duration) -> Result<(), Error> {
        let hold = InMap {
            until: coarse_after(time),
            ..InMap::default()
        };
        write(&self.variable, &hold)
    }

    /// From now on, for so long, has all that clients send go on to this connection server, which knows by
    /// now what is known here: first what has waited. It must be on this LAN.
    pub fn pass_on(&self, to: &DataServer, time: Duration) -> Result<Vec<Resumed>, Error> {
        let mut hold = InMap {
            until: coarse_after(time),
            to: *to,
            ..InMap::default()
        };
        // The way first: the program may read this while it is written.
        write(&self.variable, &hold)?;
        hold.passes_on = 1;
        write(&self.variable, &hold)?;
        self.let_go()
    }

    /// Nothing waits any more, or is passed on. What still waited goes on here.
    pub fn end(&self) -> Result<Vec<Resumed>, Error> {
        write(&self.variable, &InMap::default())?;
        self.let_go()
    }

    /// What waits goes its way, whichever that is now, in the order in which it came.
    pub fn let_go(&self) -> Result<Vec<Resumed>, Error> {
        let held = self.held.wait(Duration::ZERO)?;
        held.map(|held| self.again.run(&held.frame, held.interface))
            .collect()
    }
}

fn write(variable: &MapHandle, hold: &InMap) -> Result<(), Error> {
    update("hold", variable, &0u32, hold)
}
