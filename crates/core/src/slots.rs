//! Which index of the programs' map of data servers belongs to which data server.
//!
//! TCB entries name their owner by index. So an index must mean the same server for as long as an
//! entry may name it: over reloads, over restarts of the daemon, and, after the server was taken
//! out of the configuration, for a quarantine that should be no shorter than an entry's life.

use std::collections::BTreeSet;
use std::time::Duration;

use baton_abi::MAX_DATA_SERVERS;
use baton_wire::Address;

use crate::{Error, Moment};

/// An index of the map of data servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u8);

const _: () = assert!(MAX_DATA_SERVERS == 256, "a slot is a byte");

impl From<u8> for Slot {
    fn from(index: u8) -> Self {
        Self(index)
    }
}

impl From<Slot> for u16 {
    fn from(slot: Slot) -> Self {
        slot.0.into()
    }
}

impl From<Slot> for u32 {
    fn from(slot: Slot) -> Self {
        slot.0.into()
    }
}

/// Which data server has which slot.
#[derive(Clone, Debug)]
pub struct Slots {
    quarantine: Duration,
    places: Vec<Place>,
}

impl Slots {
    /// All slots empty. A slot that is given up stays empty for `quarantine`.
    pub fn new(quarantine: Duration) -> Self {
        Self {
            quarantine,
            places: vec![Place::Fresh; MAX_DATA_SERVERS as usize],
        }
    }

    /// Makes the slots as an earlier daemon left them in the map. `taken` names each data server whose address
    /// is in the map, whether it is still in the configuration or not. All slots count as given up at `now`; a
    /// data server gets its slot back when [`Slots::assign`] names it.
    pub fn restored(
        now: Moment,
        quarantine: Duration,
        taken: impl IntoIterator<Item = (Slot, Address)>,
    ) -> Self {
        let mut slots = Self::new(quarantine);
        for (slot, address) in taken {
            slots.places[usize::from(slot.0)] = Place::Left {
                address,
                until: now + quarantine,
            };
        }
        slots
    }

    /// Gives slots to exactly the `wanted` data servers from now on: those that have or had one keep it, the
    /// others get one.
    ///
    /// # Errors
    /// [`Error::NoSlot`] if there is no slot for one of them; nothing has changed then.
    pub fn assign(
        &mut self,
        now: Moment,
        wanted: impl IntoIterator<Item = Address>,
    ) -> Result<(), Error> {
        let mut missing: BTreeSet<Address> = wanted.into_iter().collect();
        let mut places = self.places.clone();
        for place in &mut places {
            if let Some(address) = place.address() {
                *place = if missing.remove(&address) {
                    Place::Taken(address)
                } else {
                    place.given_up(address, now + self.quarantine)
                };
            }
        }
        for address in missing {
            *self.vacant(&mut places, now, address)? = Place::Taken(address);
        }
        self.places = places;
        Ok(())
    }

    /// The slot of a data server, if it has one now.
    pub fn slot(&self, address: Address) -> Option<Slot> {
        self.taken()
            .find(|(_, found)| *found == address)
            .map(|(slot, _)| slot)
    }

    /// Every data server that has a slot now.
    pub fn taken(&self) -> impl Iterator<Item = (Slot, Address)> {
        (0..=u8::MAX)
            .zip(&self.places)
            .filter_map(|(index, place)| match place {
                Place::Taken(address) => Some((Slot(index), *address)),
                Place::Fresh | Place::Left { .. } => None,
            })
    }

    /// A slot that no data server ever had. If there is none, the slot that was given up first of those that are
    /// out of quarantine.
    fn vacant<'a>(
        &self,
        places: &'a mut [Place],
        now: Moment,
        address: Address,
    ) -> Result<&'a mut Place, Error> {
        places
            .iter_mut()
            .filter_map(|place| place.vacant_since(now).map(|since| (since, place)))
            .min_by_key(|(since, _)| *since)
            .map(|(_, place)| place)
            .ok_or(Error::NoSlot {
                address,
                slots: MAX_DATA_SERVERS as usize,
                quarantine: self.quarantine,
            })
    }
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Fresh,
    Taken(Address),
    /// The slot was given up, and no other data server gets it before `until`.
    Left {
        address: Address,
        until: Moment,
    },
}

impl Place {
    fn address(self) -> Option<Address> {
        match self {
            Self::Fresh => None,
            Self::Taken(address) | Self::Left { address, .. } => Some(address),
        }
    }

    fn given_up(self, address: Address, until: Moment) -> Self {
        match self {
            Self::Left { .. } | Self::Fresh => self,
            Self::Taken(_) => Self::Left { address, until },
        }
    }

    fn vacant_since(self, now: Moment) -> Option<Moment> {
        match self {
            Self::Fresh => Some(Moment::default()),
            Self::Left { until, .. } if until <= now => Some(until),
            Self::Left { .. } | Self::Taken(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUARANTINE: Duration = Duration::from_secs(3600);

    fn at(seconds: u64) -> Moment {
        Moment::after_epoch(Duration::from_secs(seconds))
    }

    fn node(number: u16) -> Address {
        let [high, low] = number.to_be_bytes();
        std::net::Ipv4Addr::new(192, 0, high, low).into()
    }

    fn assigned(slots: &Slots) -> Vec<(u32, Address)> {
        slots
            .taken()
            .map(|(slot, address)| (slot.into(), address))
            .collect()
    }

    #[test]
    fn a_reload_moves_nobody() {
        let mut slots = Slots::new(QUARANTINE);
        slots.assign(at(0), [node(1), node(2), node(3)]).unwrap();
        let before = assigned(&slots);
        slots
            .assign(at(1), [node(3), node(0), node(2), node(1)])
            .unwrap();
        assert_eq!(assigned(&slots)[..3], before);
        assert_eq!(slots.slot(node(0)), Some(Slot(3)));
    }

    #[test]
    fn who_comes_back_has_its_slot_back() {
        let mut slots = Slots::new(QUARANTINE);
        slots.assign(at(0), [node(1), node(2)]).unwrap();
        slots.assign(at(1), [node(2)]).unwrap();
        assert_eq!(slots.slot(node(1)), None);
        slots
            .assign(at(999_999), [node(3), node(1), node(2)])
            .unwrap();
        assert_eq!(slots.slot(node(1)), Some(Slot(0)));
        assert_eq!(slots.slot(node(3)), Some(Slot(2)));
    }

    #[test]
    fn nobody_else_gets_a_slot_within_its_quarantine() {
        let mut slots = Slots::new(QUARANTINE);
        slots.assign(at(0), (0..256).map(node)).unwrap();
        slots.assign(at(10), (1..256).map(node)).unwrap();
        // Being left out again does not begin the quarantine anew.
        slots.assign(at(20), (1..256).map(node)).unwrap();
        let before = assigned(&slots);
        let refused = slots.assign(at(3609), (1..257).map(node)).unwrap_err();
        assert!(matches!(refused, Error::NoSlot { address, .. } if address == node(256)));
        assert_eq!(assigned(&slots), before, "a refusal changes nothing");
        slots.assign(at(3610), (1..257).map(node)).unwrap();
        assert_eq!(slots.slot(node(256)), Some(Slot(0)));
    }

    #[test]
    fn of_used_slots_the_one_longest_empty_goes_first() {
        let mut slots = Slots::new(QUARANTINE);
        slots.assign(at(0), (0..256).map(node)).unwrap();
        slots.assign(at(1), (0..255).map(node)).unwrap();
        slots.assign(at(2), (1..255).map(node)).unwrap();
        slots
            .assign(at(9999), (1..256).chain([300]).map(node))
            .unwrap();
        assert_eq!(slots.slot(node(255)), Some(Slot(255)), "its own");
        assert_eq!(slots.slot(node(300)), Some(Slot(0)));
    }

    #[test]
    fn a_restart_moves_nobody_and_quarantines_the_forgotten() {
        let left = [(Slot(9), node(1)), (Slot(200), node(2))];
        let mut slots = Slots::restored(at(5), QUARANTINE, left);
        slots.assign(at(5), [node(2), node(7)]).unwrap();
        assert_eq!(slots.slot(node(2)), Some(Slot(200)));
        assert_eq!(slots.slot(node(7)), Some(Slot(0)));
        let crowd = (100..353).map(node).chain([node(2), node(7)]);
        assert!(
            slots.assign(at(3604), crowd.clone()).is_ok(),
            "255 fit beside the quarantine"
        );
        assert!(
            slots
                .assign(at(3604), crowd.clone().chain([node(400)]))
                .is_err()
        );
        slots.assign(at(3605), crowd.chain([node(400)])).unwrap();
        assert_eq!(slots.slot(node(400)), Some(Slot(9)));
    }
}
