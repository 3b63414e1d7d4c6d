//! What each data server, pool and route had to do since it got its index or number.

use baton_abi::{TALLIED_ROUTES, TALLY_DATA_SERVERS, TALLY_POOLS, TALLY_ROUTES, Tally};
use libbpf_rs::{MapCore as _, MapFlags};
use zerocopy::IntoBytes as _;

use crate::{
    Error, Routing,
    maps::{element, map_error, per_cpu, read, update},
};

/// What a tally is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tallied {
    /// The data server with this index.
    DataServer(u16),
    /// The pool with this index.
    Pool(u16),
    /// The route with this number. A number below `MAX_SERVICES` stands for what no route of that service takes.
    Route(u16),
}

impl Tallied {
    fn place(self) -> u32 {
        match self {
            Self::DataServer(index) => TALLY_DATA_SERVERS + u32::from(index),
            Self::Pool(index) => TALLY_POOLS + u32::from(index),
            Self::Route(number) => TALLY_ROUTES + u32::from(number),
        }
    }
}

impl Routing {
    /// The tally, summed over processors.
    pub fn tally(&self, of: Tallied) -> Result<Tally, Error> {
        let map = &self.tallies;
        let mut sum = Tally::default();
        for cpu in per_cpu("tallies", map, of.place())? {
            add(&mut sum, &read("tallies", &cpu)?);
        }
        Ok(sum)
    }

    /// Sets the tally to zero, because its index goes to another data server, pool or route.
    pub(crate) fn clear_tally(&self, of: Tallied) -> Result<(), Error> {
        let map = &self.tallies;
        let place = of.place();
        let cpus = per_cpu("tallies", map, place)?.len();
        let zeros = vec![Tally::default().as_bytes().to_vec(); cpus];
        map.update_percpu(place.as_bytes(), &zeros, MapFlags::ANY)
            .map_err(|error| map_error("tallies", error))
    }

    /// The id of the route that has each route number, by number. 0 means that no route has it.
    pub fn route_ids(&self) -> Result<Vec<u64>, Error> {
        let map = &self.route_ids;
        (0..TALLIED_ROUTES)
            .map(|number| element("route_ids", map, number))
            .collect()
    }

    /// Sets the id of the route that has this route number.
    pub fn set_route_id(&self, number: u16, id: u64) -> Result<(), Error> {
        let map = &self.route_ids;
        update("route_ids", map, &u32::from(number), &id)
    }
}

fn add(sum: &mut Tally, other: &Tally) {
    sum.requests += other.requests;
    sum.bytes += other.bytes;
    sum.connections += other.connections;
    sum.taken_back += other.taken_back;
    sum.unavailable += other.unavailable;
}
