//! What the daemon tells others of its own doors' counts, and hears of theirs.

use std::{
    collections::BTreeMap,
    fs,
    net::{Ipv4Addr, SocketAddrV4},
};

use anyhow::{Context, Result};
use baton_dataplane::{AtDoor, DataServer, Tallied};
use baton_streams::Topic;
use baton_wire::{Address, Counts, Tallies};
use tracing::warn;

use crate::{
    daemon::Daemon,
    logging::logged,
    places::{service_at, services_with_places},
    tables::{self, RouteId, stable_hash},
};

/// The file with the boot's id, which is another one after each boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

impl Daemon {
    /// Tells connection servers what the doors of this node have counted, if that has changed since it was told last.
    pub(crate) fn tell_tallies(&mut self) {
        logged(self.tell_tallies_if_other());
    }

    fn tell_tallies_if_other(&mut self) -> Result<()> {
        let Some(server) = self.dataplane.as_data_server() else {
            return Ok(());
        };
        // The program counts the sum last, so it is read first: if the sum is unchanged, so is everything else.
        let all = counts(server, AtDoor::All)?;
        if all == self.door_tallies.last {
            return Ok(());
        }
        let (pools, routes) = self.counted_here()?;
        let incarnation = incarnation(server)?;
        let text = Tallies::new(incarnation, all, pools, routes).write();
        self.tell_connection_servers(Topic::Tallies, &text);
        self.door_tallies.last = all;
        Ok(())
    }

    /// Tells connection servers the counts again after a reload, because connection servers, pools or routes may have
    /// changed. Counts of pools and routes that no longer exist are forgotten.
    pub(crate) fn reconfigure_tallies(&mut self) -> Result<()> {
        self.door_tallies.last = Counts::default();
        self.tell_tallies();
        let (mut pools, mut routes) = (Vec::new(), Vec::new());
        for (at, service) in services_with_places(self.local.config.services.iter())? {
            pools.extend(tables::pools(at, service).map(|pool| pool.id.number()));
            let ids = service.routes.iter().map(|route| RouteId::new(at, route));
            routes.extend(ids.map(RouteId::number));
        }
        let is_one = |of: &[u64], id| of.contains(&id);
        (self.door_tallies.reported).retain(|id| is_one(&pools, id), |id| is_one(&routes, id));
        Ok(())
    }

    /// Returns the counts of each pool and each route, by id, for this node's services whose owners route.
    fn counted_here(&self) -> Result<(BTreeMap<u64, Counts>, BTreeMap<u64, Counts>)> {
        let (mut pools, mut routes) = (BTreeMap::new(), BTreeMap::new());
        for service in self.local.config.services_of(&self.local.me.name) {
            if !service.owner_routes() {
                continue;
            }
            let at = service_at(service)?;
            let names = service.pools.iter().map(|pool| Some(pool.name.as_str()));
            for name in names.chain([None]) {
                let tallied = self.tables.tallied_pool(at, name);
                let id = tables::PoolId::new(at, name).number();
                pools.extend(self.counted(tallied)?.map(|counts| (id, counts)));
            }
            for route in &service.routes {
                let tallied = self.tables.tallied_route(at, route);
                let id = RouteId::new(at, route).number();
                routes.extend(self.counted(tallied)?.map(|counts| (id, counts)));
            }
        }
        Ok((pools, routes))
    }

    /// Returns what the doors of this node have counted for a pool or a route; `None` if no door here counts for it.
    fn counted(&self, tallied: Option<Tallied>) -> Result<Option<Counts>> {
        let of = tallied.and_then(AtDoor::of);
        let here = self.dataplane.as_data_server().zip(of);
        here.map(|(server, of)| counts(server, of)).transpose()
    }

    /// Takes note of what the doors of another data server have counted.
    pub(crate) fn hear_tallies(&mut self, from: Ipv4Addr, text: &[u8]) {
        match Tallies::read(text) {
            Some(report) => self.door_tallies.reported.handle(from.into(), report),
            None => {
                warn!(%from, "cannot read this node's request counters: does it run another release of baton?");
            }
        }
    }

    /// Returns what all doors have counted for a pool, as far as this node knows. It is the pool called `name` of the
    /// service at this place or, without a name, the service's own pool. `tallied` is where this node counts for it.
    pub(crate) fn at_doors_for_pool(
        &self,
        at: SocketAddrV4,
        name: Option<&str>,
        tallied: Option<Tallied>,
    ) -> Result<Counts> {
        let id = tables::PoolId::new(at, name).number();
        let mut sum = self.door_tallies.reported.pool(id);
        sum += self.counted(tallied)?.unwrap_or_default();
        Ok(sum)
    }

    /// Returns what all doors have counted for a route, as far as this node knows. `tallied` is where this node counts
    /// for it.
    pub(crate) fn at_doors_by_route(
        &self,
        at: SocketAddrV4,
        route: &baton_config::Route,
        tallied: Option<Tallied>,
    ) -> Result<Counts> {
        let id = RouteId::new(at, route).number();
        let mut sum = self.door_tallies.reported.route(id);
        sum += self.counted(tallied)?.unwrap_or_default();
        Ok(sum)
    }

    /// Returns what the doors of one data server have counted for all its services. Requests for which no data server
    /// was available are left out, because this data server did not answer them.
    pub(crate) fn at_doors_of(&self, node: Address) -> Result<Counts> {
        let here = (self.dataplane.as_data_server()).filter(|_| node == self.local.address.into());
        let mut sum = match here {
            Some(server) => counts(server, AtDoor::All)?,
            None => self.door_tallies.reported.all_of(node),
        };
        sum.requests = sum.requests.saturating_sub(sum.unavailable);
        sum.unavailable = 0;
        Ok(sum)
    }
}

fn counts(server: &DataServer, of: AtDoor) -> Result<Counts> {
    let tally = server.door_tally(of)?;
    Ok(Counts {
        requests: tally.requests,
        bytes: tally.bytes,
        handovers: tally.handovers,
        unavailable: tally.unavailable,
    })
}

/// Returns a number that identifies this node's map of counts. No other map has the same number, even after a reboot.
fn incarnation(server: &DataServer) -> Result<u64> {
    let boot = fs::read_to_string(BOOT_ID).with_context(|| format!("cannot read {BOOT_ID}"))?;
    let map = server.door_tallies_id()?;
    Ok(stable_hash(&format!("{} {map}", boot.trim())))
}
