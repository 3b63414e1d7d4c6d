//! The switch's table of places: which connection server has each place, and which one had it before.

use std::{collections::BTreeSet, time::Duration};

use anyhow::Result;
use baton_abi::{CHOICES_PER_POOL, DATA_SERVER_PRESENT, MaglevSlot, NO_DATA_SERVER};
use baton_core::{
    Moment,
    membership::Membership,
    policy::{Chooser, Policy, Server},
};
use baton_dataplane::{Dataplane, Switch};
use baton_net::Hop;
use baton_wire::Address;

use super::{Tables, ways};
use crate::local_node::{FRONT, LocalNode};

/// The content of the switch's map, so that only changes are written.
#[derive(Default)]
pub struct MaglevSlots {
    written: Vec<MaglevSlot>,
    /// The time from which on no connection is left from before the last change.
    settled_at: Option<Moment>,
}

impl MaglevSlots {
    /// Begins with what an earlier daemon wrote, or, if the map is new, with places that nobody has.
    pub fn over(switch: &Switch, new: bool) -> Result<Self> {
        let nobody = MaglevSlot {
            now: NO_DATA_SERVER as u16,
            before: NO_DATA_SERVER as u16,
            turn: 0,
        };
        let written = if new {
            vec![nobody; CHOICES_PER_POOL as usize]
        } else {
            switch.places()?
        };
        Ok(Self {
            written,
            settled_at: None,
        })
    }

    /// The time from which on no connection is left from before the last change. `None`: nothing is pending.
    pub fn next_timeout(&self) -> Option<Moment> {
        self.settled_at
    }

    /// Writes each place that has changed.
    fn write(
        &mut self,
        switch: &Switch,
        now: Moment,
        idle: Duration,
        choices: &[u16],
        works: impl Fn(u16) -> bool,
    ) -> Result<()> {
        let settled = self.settled_at.is_some_and(|at| at <= now);
        if settled {
            self.settled_at = None;
        }
        for (at, (place, chosen)) in (0..).zip(self.written.iter_mut().zip(choices)) {
            let new = next(*place, *chosen, settled, &works);
            if new == *place {
                continue;
            }
            if new.now != place.now {
                self.settled_at = Some(now + idle);
            }
            switch.set_place(at, &new)?;
            *place = new;
        }
        // For changes that an earlier daemon made, the time counts from this daemon's start.
        if self.settled_at.is_none() && self.written.iter().any(|place| place.now != place.before) {
            self.settled_at = Some(now + idle);
        }
        Ok(())
    }
}

/// The next content of a place for which `chosen` is chosen. Existing connections stay with the connection server that
/// had the place before, as long as that one works.
fn next(place: MaglevSlot, chosen: u16, settled: bool, works: impl Fn(u16) -> bool) -> MaglevSlot {
    let (before, turn) = if chosen == place.now {
        (place.before, place.turn)
    } else {
        (place.now, place.turn.wrapping_add(1))
    };
    let gone = settled && chosen == place.now || !works(before);
    MaglevSlot {
        now: chosen,
        before: if gone { chosen } else { before },
        turn,
    }
}

impl Tables {
    /// Writes which connection servers get clients' packets. A connection server that is silent, has no data server
    /// itself, or is behind a router, gets none.
    pub fn write_maglev_slots(
        &mut self,
        (dataplane, switch): (&Dataplane, &Switch),
        local: &LocalNode,
        now: Moment,
        idle: Duration,
        membership: &Membership,
    ) -> Result<()> {
        let usable = membership
            .usable(FRONT)
            .map_or(&[][..], |usable| &usable.servers);
        let servers: Vec<Server<'_>> = usable
            .iter()
            .filter(|server| self.is_next_door(server.address))
            .filter_map(|server| {
                Some(Server {
                    slot: self.slots.slot(server.address)?,
                    name: &server.name,
                    weight: server.weight,
                    load: None,
                })
            })
            .collect();
        // If no connection server is usable, everything stays as it is: they know what to tell clients.
        if servers.is_empty() {
            return Ok(());
        }
        let working: BTreeSet<u16> = servers.iter().map(|server| server.slot.into()).collect();
        // A connection server is marked present before it gets a place, and until it no longer has any.
        self.write_presence(dataplane, local, &working, true)?;
        let mut chooser = Chooser::new(Policy::Client);
        let choices = chooser.choices(now, &servers);
        let works = |slot| working.contains(&slot);
        self.maglev_slots.write(switch, now, idle, choices, works)?;
        self.write_presence(dataplane, local, &working, false)
    }

    /// Whether the switch's frames can reach this connection server.
    pub fn is_next_door(&self, address: Address) -> bool {
        matches!(self.hops.get(&address), Some(Hop::Next(next)) if !next.routed)
    }

    /// Marks the connection servers that work as present, or, with `present` false, the others as absent.
    fn write_presence(
        &self,
        dataplane: &Dataplane,
        local: &LocalNode,
        working: &BTreeSet<u16>,
        present: bool,
    ) -> Result<()> {
        for address in ways::connection_server_addresses(&local.config) {
            let (Some(slot), Some(hop)) = (
                self.slot(address.into()),
                self.hops.get(&Address::from(address)),
            ) else {
                continue;
            };
            if working.contains(&slot) != present {
                continue;
            }
            let mut way = ways::data_server(address, hop, &local.link, 0);
            if !present {
                way.flags &= !(DATA_SERVER_PRESENT as u8);
            }
            if dataplane.data_server(slot)? != way {
                dataplane.set_data_server(slot, &way)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(now: u16, before: u16, turn: u32) -> MaglevSlot {
        MaglevSlot { now, before, turn }
    }

    #[test]
    fn connections_stay_while_who_has_them_works() {
        let all = |_| true;
        // A new connection server takes the place, then another one.
        assert_eq!(next(slot(0, 0, 7), 1, false, all), slot(1, 0, 8));
        assert_eq!(next(slot(1, 0, 8), 2, false, all), slot(2, 1, 9));
        // Nothing has changed for this place.
        assert_eq!(next(slot(1, 0, 8), 1, false, all), slot(1, 0, 8));
        // The place goes back to its former connection server; the present one keeps connections that have begun.
        assert_eq!(next(slot(1, 0, 8), 0, false, all), slot(0, 1, 9));
    }

    #[test]
    fn who_does_not_work_has_no_connections() {
        let not = |gone: u16| move |slot| slot != gone;
        assert_eq!(next(slot(1, 1, 3), 0, false, not(1)), slot(0, 0, 4));
        assert_eq!(next(slot(1, 0, 3), 1, false, not(0)), slot(1, 1, 3));
        let nobody = NO_DATA_SERVER as u16;
        assert_eq!(
            next(slot(nobody, nobody, 0), 3, false, not(nobody)),
            slot(3, 3, 1)
        );
    }

    #[test]
    fn in_the_end_a_place_has_one() {
        let all = |_| true;
        assert_eq!(next(slot(1, 0, 5), 1, true, all), slot(1, 1, 5));
        // Unless it has just changed again.
        assert_eq!(next(slot(1, 0, 5), 2, true, all), slot(2, 1, 6));
    }
}
