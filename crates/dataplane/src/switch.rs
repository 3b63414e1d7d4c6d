//! The switch's program and map.

use std::os::fd::OwnedFd;

use baton_abi::{CHOICES_PER_POOL, MaglevSlot};
use libbpf_rs::MapHandle;

use crate::{
    Error,
    maps::{element, update},
};

/// The program and the map of a switch.
pub struct Switch {
    /// The XDP program.
    pub xdp: OwnedFd,
    pub(crate) places: MapHandle,
}

impl Switch {
    /// The whole table: which connection server has each place.
    pub fn places(&self) -> Result<Vec<MaglevSlot>, Error> {
        (0..CHOICES_PER_POOL)
            .map(|at| element("places", &self.places, at))
            .collect()
    }

    /// Sets one place of the table, at once for all packets.
    pub fn set_place(&self, at: u32, place: &MaglevSlot) -> Result<(), Error> {
        update("places", &self.places, &at, place)
    }
}
