//! Requests that wait at a connection server because another one is about to take over (`bpf/cs/hold.h`).

use std::time::Duration;

use baton_abi::{DataServer, Hold as InMap};
use libbpf_rs::MapHandle;

use crate::{
    Dataplane, Error,
    again::{Again, Resumed},
    clock::coarse_after,
    maps::{map_error, only_on_cs, update},
    ring::Ring,
};

/// Whoever has it lets requests wait, and lets them go: at most one may be in use.
pub struct Hold {
    holds: MapHandle,
    held: Ring,
    again: Again,
}

impl Dataplane {
    /// The hold on the requests that come to a connection server.
    ///
    /// # Errors
    /// [`Error::Map`] elsewhere.
    pub fn hold(&self) -> Result<Hold, Error> {
        let maps = &self.programs().maps;
        let holds = only_on_cs("holds", &maps.holds)?;
        let hold = Hold {
            holds: MapHandle::try_from(holds).map_err(|error| map_error("holds", error))?,
            held: Ring::of("held", only_on_cs("held", &maps.held)?)?,
            again: self.again()?,
        };
        // What waited for an earlier daemon its clients send again.
        hold.holds_nothing()?;
        hold.held.wait(Duration::ZERO)?.for_each(drop);
        Ok(hold)
    }
}

impl Hold {
    /// Has requests wait from now on, for so long at most. What else comes goes on.
    pub fn begin(&self, time: Duration) -> Result<(), Error> {
        let hold = InMap {
            until: coarse_after(time),
            ..InMap::default()
        };
        update("holds", &self.holds, &0u32, &hold)
    }

    /// From now on, for so long at most, has them go on to this connection server, which knows by now all
    /// that is known here: those that waited, too. It must be on this LAN.
    pub fn pass_on(&self, to: &DataServer, time: Duration) -> Result<Vec<Resumed>, Error> {
        let mut hold = InMap {
            until: coarse_after(time),
            to: *to,
            ..InMap::default()
        };
        // The way first: the program may read this while it is written.
        update("holds", &self.holds, &0u32, &hold)?;
        hold.passes_on = 1;
        update("holds", &self.holds, &0u32, &hold)?;
        self.let_go()
    }

    /// Nothing waits any more. What still did goes on here.
    pub fn end(&self) -> Result<Vec<Resumed>, Error> {
        self.holds_nothing()?;
        self.let_go()
    }

    /// What waits goes its way, whichever that is now, in the order in which it came.
    pub fn let_go(&self) -> Result<Vec<Resumed>, Error> {
        let held = self.held.wait(Duration::ZERO)?;
        held.map(|held| self.again.run(&held.frame, held.interface, &[]))
            .collect()
    }

    fn holds_nothing(&self) -> Result<(), Error> {
        update("holds", &self.holds, &0u32, &InMap::default())
    }
}
