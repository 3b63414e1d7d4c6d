//! First requests that wait at a connection server because another one is about to take over
//! (`bpf/connection_server/begin/hold.h`).

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

/// Makes first requests wait, and lets them go. At most one may be in use.
pub struct Hold {
    variable: MapHandle,
    held: Ring<Held>,
    again: Again,
}

impl ConnectionServer {
    /// Opens the hold on the requests that come here.
    pub fn hold(&self) -> Result<Hold, Error> {
        let held = Ring::of("held", &self.held, read_held)?;
        // What waited for an earlier daemon is dropped, because its clients send it again.
        held.wait(Duration::ZERO)?.for_each(drop);
        Ok(Hold {
            variable: again("hold", &self.hold)?,
            held,
            again: self.again()?,
        })
    }

    /// Ends the hold: nothing waits here or is passed on anymore. This connection server is the one that clients come
    /// to.
    pub fn end_hold(&self) -> Result<(), Error> {
        write(&self.hold, &InMap::default())
    }
}

impl Hold {
    /// Makes first requests wait from now on, for at most this long. Everything else goes on.
    pub fn begin(&self, time: Duration) -> Result<(), Error> {
        let hold = InMap {
            until: coarse_after(time),
            ..InMap::default()
        };
        write(&self.variable, &hold)
    }

    /// From now on, for this long, passes all that clients send on to this connection server, beginning with what has
    /// waited. That connection server must be on this LAN, and must know by now what is known here.
    pub fn pass_on(&self, to: &DataServer, time: Duration) -> Result<Vec<Resumed>, Error> {
        let mut hold = InMap {
            until: coarse_after(time),
            to: *to,
            ..InMap::default()
        };
        // The way is written first, because the program may read this while it is written.
        write(&self.variable, &hold)?;
        hold.passes_on = 1;
        write(&self.variable, &hold)?;
        self.let_go()
    }

    /// Ends the hold: nothing waits or is passed on anymore. What still waited goes on here.
    pub fn end(&self) -> Result<Vec<Resumed>, Error> {
        write(&self.variable, &InMap::default())?;
        self.let_go()
    }

    /// Lets what waits go on, by whichever way applies now, in the order in which it came.
    pub fn let_go(&self) -> Result<Vec<Resumed>, Error> {
        let held = self.held.wait(Duration::ZERO)?;
        held.map(|held| self.again.run(&held.frame, held.interface))
            .collect()
    }
}

fn write(variable: &MapHandle, hold: &InMap) -> Result<(), Error> {
    update("hold", variable, &0u32, hold)
}
