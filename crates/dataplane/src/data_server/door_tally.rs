//! What a data server's doors have counted.

use baton_abi::{DOOR_TALLY_ALL, DOOR_TALLY_POOLS, DOOR_TALLY_ROUTES, DoorTally};
use libbpf_rs::{MapCore as _, MapFlags};
use zerocopy::IntoBytes as _;

use crate::{
    DataServer, Error, Tallied,
    maps::{map_error, per_cpu, read},
};

/// What a count of the doors is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtDoor {
    /// This data server, with all services whose owners route.
    All,
    /// The pool with this index.
    Pool(u16),
    /// The route with this number. A number below `MAX_SERVICES` stands for what no route of that service takes.
    Route(u16),
}

impl AtDoor {
    /// The counts of the same pool or route as a connection server's tally. `None` for a data server, because doors
    /// count nothing for other data servers.
    pub fn of(tallied: Tallied) -> Option<Self> {
        match tallied {
            Tallied::DataServer(_) => None,
            Tallied::Pool(index) => Some(Self::Pool(index)),
            Tallied::Route(number) => Some(Self::Route(number)),
        }
    }

    fn place(self) -> u32 {
        match self {
            Self::All => DOOR_TALLY_ALL,
            Self::Pool(index) => DOOR_TALLY_POOLS + u32::from(index),
            Self::Route(number) => DOOR_TALLY_ROUTES + u32::from(number),
        }
    }
}

impl DataServer {
    /// What the doors have counted, summed over processors.
    pub fn door_tally(&self, of: AtDoor) -> Result<DoorTally, Error> {
        let map = &self.door_tallies;
        let mut sum = DoorTally::default();
        for cpu in per_cpu("door_tallies", map, of.place())? {
            let one: DoorTally = read("door_tallies", &cpu)?;
            sum.requests += one.requests;
            sum.bytes += one.bytes;
            sum.handovers += one.handovers;
            sum.unavailable += one.unavailable;
        }
        Ok(sum)
    }

    /// The kernel's number of the map in which doors count. Until the next boot, any other map has another number.
    pub fn door_tallies_id(&self) -> Result<u32, Error> {
        let map = &self.door_tallies;
        let info = map
            .info()
            .map_err(|error| map_error("door_tallies", error))?;
        Ok(info.info.id)
    }

    /// Sets the counts to zero, because their index goes to another pool or route.
    pub(crate) fn clear_door_tally(&self, of: Tallied) -> Result<(), Error> {
        let (map, Some(of)) = (&self.door_tallies, AtDoor::of(of)) else {
            return Ok(());
        };
        let cpus = per_cpu("door_tallies", map, of.place())?.len();
        let zeros = vec![DoorTally::default().as_bytes().to_vec(); cpus];
        map.update_percpu(of.place().as_bytes(), &zeros, MapFlags::ANY)
            .map_err(|error| map_error("door_tallies", error))
    }
}
