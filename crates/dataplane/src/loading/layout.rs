//! Makes sure that pinned maps are read in the layout in which they were written.
//!
//! The next daemon may be of another version with other structures. A size tells little, because a member that moves
//! within a structure leaves the size as it was. So the layout of each pinned map's keys and values is noted as a
//! number in a pinned map of its own, and compared before anything is changed:
//!
//! | a pinned map | |
//! |---|---|
//! | is as this version wants it | taken over with all it holds |
//! | is not, and the daemon fills it, or it only counts or remembers for moments | made anew |
//! | is not, and connections would be lost with it or led astray | refused: nothing is changed |
//!
//! Running programs keep their maps until other programs take their place.

use std::{os::fd::AsFd as _, path::PathBuf};

use baton_abi::{
    APP_COUNTER_NAMES, APP_EVENT_KIND_NAMES, APP_SOCKET_FLAG_NAMES, AppEvent, COUNTER_NAMES,
    DOOR_TALLY_PLACE_NAMES, LCCP_TCB_OPTION_NAMES, ROLE_CS, ROLE_DS, ROLE_SWITCH,
    TALLY_PLACE_NAMES, TCB_STATE_NAMES,
};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, MapInfo, MapType, OpenMapMut, libbpf_sys};

use crate::{Error, Pins};

include!(concat!(env!("OUT_DIR"), "/layouts.rs"));

/// Maps that a connection server must keep: its connections, and what the numbers in them stand for.
const OF_CS: [&str; 5] = ["tcbs", "data_servers", "services", "pools", "route_ids"];
/// Maps that a data server must keep: where the requests and responses of its connections begin and end.
const OF_DS: [&str; 2] = ["doors", "responses"];
/// Maps that a switch must keep.
const OF_SWITCH: [&str; 3] = ["begun", "places", "data_servers"];

/// Maps that an application node must keep: only what the hooks have noted tells which programs listen.
const OF_APP: [&str; 2] = ["app_sockets", "app_listeners"];

/// The pinned map that has the numbers. A key is a map's name, filled up with zeros.
pub(crate) const RECORD: &str = "layouts";
/// The length of a key in the record. No map's name is longer.
const NAME: usize = 16;
/// How many maps the record has room for: more than there are.
const RECORDS: u32 = 256;

/// A map as this version wants it.
pub(crate) struct Wanted {
    name: String,
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
}

/// How a pinned map compares with the map that this version wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Missing,
    Same,
    /// The layout is the same, but the size is not the one in the configuration.
    Resized,
    /// Another version wrote the map.
    Other,
}

impl Wanted {
    pub fn of(map: &OpenMapMut<'_>) -> Self {
        Self {
            name: map.name().to_string_lossy().into_owned(),
            kind: map.map_type().into(),
            key_size: map.key_size(),
            value_size: map.value_size(),
            entries: map.max_entries(),
            flags: map.map_flags(),
        }
    }

    fn fate(&self, pins: &Pins, record: Option<&MapHandle>) -> Result<Fate, Error> {
        let path = pins.map(&self.name);
        if !path.exists() {
            return Ok(Fate::Missing);
        }
        let failed = |error: libbpf_rs::Error| pinned(pins, &self.name, &error);
        let map = MapHandle::from_pinned_path(&path).map_err(failed)?;
        let there = MapInfo::new(map.as_fd()).map_err(failed)?.info;
        let number = match record {
            Some(record) => record.lookup(&key(&self.name), MapFlags::ANY),
            None => Ok(None),
        };
        let same = there.type_ == self.kind
            && there.key_size == self.key_size
            && there.value_size == self.value_size
            && there.map_flags == self.flags
            && number.map_err(failed)? == Some(number_of(&self.name).to_le_bytes().to_vec());
        Ok(match (same, there.max_entries == self.entries) {
            (true, true) => Fate::Same,
            (true, false) => Fate::Resized,
            (false, _) => Fate::Other,
        })
    }
}

/// Removes the pins of maps that must be made anew, and returns the names of these maps.
///
/// # Errors
/// [`Error::Layout`] or [`Error::DoorLayout`], before anything is changed.
pub(crate) fn settle(pins: &Pins, roles: u32, wanted: &[Wanted]) -> Result<Vec<String>, Error> {
    let is_kept = |map: &str| {
        roles & ROLE_CS != 0 && OF_CS.contains(&map)
            || roles & ROLE_DS != 0 && OF_DS.contains(&map)
            || roles & ROLE_SWITCH != 0 && OF_SWITCH.contains(&map)
    };
    let refuse = |dir, reason| match roles & (ROLE_CS | ROLE_SWITCH) {
        0 => Error::DoorLayout { dir, reason },
        _ => Error::Layout { dir, reason },
    };
    settle_all(pins, wanted, is_kept, refuse)
}

/// Does the same as [`settle`] for an application node.
///
/// # Errors
/// [`Error::AppLayout`], before anything is changed.
pub(crate) fn settle_app(pins: &Pins, wanted: &[Wanted]) -> Result<Vec<String>, Error> {
    let refuse = |dir, reason| Error::AppLayout { dir, reason };
    settle_all(pins, wanted, |map| OF_APP.contains(&map), refuse)
}

fn settle_all(
    pins: &Pins,
    wanted: &[Wanted],
    is_kept: impl Fn(&str) -> bool,
    refuse: impl Fn(PathBuf, String) -> Error,
) -> Result<Vec<String>, Error> {
    let record = open_record(pins)?;
    let mut anew = Vec::new();
    let mut refused = Vec::new();
    for map in wanted {
        let fate = map.fate(pins, record.as_ref())?;
        if fate == Fate::Same {
            continue;
        }
        if fate != Fate::Missing && is_kept(&map.name) {
            refused.push((map.name.clone(), fate));
        }
        anew.push((map.name.clone(), fate));
    }
    if !refused.is_empty() {
        return Err(refuse(pins.dir().to_owned(), reason(&refused)));
    }
    let record = match record {
        Some(record) => record,
        None => make_record(pins)?,
    };
    for (name, fate) in &anew {
        if *fate != Fate::Missing {
            pins.forget_map(name)?;
        }
        // The number is noted before the map is there, because a number without its map misleads nobody.
        record
            .update(&key(name), &number_of(name).to_le_bytes(), MapFlags::ANY)
            .map_err(|error| pinned(pins, RECORD, &error))?;
    }
    let were_there = anew.into_iter().filter(|(_, fate)| *fate != Fate::Missing);
    Ok(were_there.map(|(name, _)| name).collect())
}

fn reason(refused: &[(String, Fate)]) -> String {
    let names = |wanted: Fate| -> Vec<&str> {
        let of_fate = refused.iter().filter(|(_, fate)| *fate == wanted);
        of_fate.map(|(name, _)| name.as_str()).collect()
    };
    let mut reasons = Vec::new();
    for (fate, why) in [
        (
            Fate::Other,
            "were written by another version, in another layout",
        ),
        (
            Fate::Resized,
            "have another size than the configuration says",
        ),
    ] {
        if !names(fate).is_empty() {
            reasons.push(format!("{} {why}", names(fate).join(", ")));
        }
    }
    reasons.join("; ")
}

fn open_record(pins: &Pins) -> Result<Option<MapHandle>, Error> {
    let path = pins.map(RECORD);
    if !path.exists() {
        return Ok(None);
    }
    let record =
        MapHandle::from_pinned_path(&path).map_err(|error| pinned(pins, RECORD, &error))?;
    Ok(Some(record))
}

fn make_record(pins: &Pins) -> Result<MapHandle, Error> {
    let failed = |error: libbpf_rs::Error| pinned(pins, RECORD, &error);
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    let (key, value) = (NAME as u32, size_of::<u64>() as u32);
    let mut record = MapHandle::create(MapType::Hash, Some(RECORD), key, value, RECORDS, &options)
        .map_err(failed)?;
    record.pin(pins.map(RECORD)).map_err(failed)?;
    Ok(record)
}

fn pinned(pins: &Pins, name: &str, error: &libbpf_rs::Error) -> Error {
    Error::Pins {
        path: pins.map(name),
        cause: std::io::Error::other(error.to_string()),
    }
}

fn key(name: &str) -> [u8; NAME] {
    let mut key = [0; NAME];
    for (place, byte) in key.iter_mut().zip(name.bytes()) {
        *place = byte;
    }
    key
}

/// The size of an event. It is a part of the ring's layout, because a ring has no value type.
const EVENT: u32 = size_of::<AppEvent>() as u32;

/// The number that stands for all that a reader of a map must know: its 64-bit FNV-1a hash
/// (<http://www.isthe.com/chongo/tech/comp/fnv/>).
fn number_of(map: &str) -> u64 {
    let layout = LAYOUTS.iter().find(|(name, _)| *name == map);
    let mut text = layout.map_or("", |(_, layout)| layout).to_owned();
    // What the numbers in a map mean is part of its layout if they outlive the daemon.
    let meanings: &[&[(&str, u32)]] = match map {
        "counters" => &[COUNTER_NAMES],
        "tallies" => &[TALLY_PLACE_NAMES],
        "door_tallies" => &[DOOR_TALLY_PLACE_NAMES],
        "app_counters" => &[APP_COUNTER_NAMES],
        "app_sockets" | "app_listeners" => &[APP_SOCKET_FLAG_NAMES],
        "app_events" => &[APP_EVENT_KIND_NAMES, &[("bytes", EVENT)]],
        "tcbs" => &[TCB_STATE_NAMES, LCCP_TCB_OPTION_NAMES],
        _ => &[],
    };
    for (name, value) in meanings.iter().copied().flatten() {
        text.push_str(&format!("{name} {value} "));
    }
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kept_map_has_a_layout_of_its_own() {
        for map in OF_CS.iter().chain(&OF_DS).chain(&OF_SWITCH).chain(&OF_APP) {
            let layout = LAYOUTS.iter().find(|(name, _)| name == map);
            assert!(
                layout.is_some_and(|(_, layout)| layout.contains("value ")),
                "{map}"
            );
        }
        assert!(LAYOUTS.len() < RECORDS as usize);
        assert!(LAYOUTS.iter().all(|(name, _)| name.len() <= NAME));
    }

    #[test]
    fn a_layout_says_where_each_member_is() {
        let tcbs = LAYOUTS.iter().find(|(name, _)| *name == "tcbs");
        let layout = tcbs.map_or("", |(_, layout)| layout);
        assert!(
            layout.contains("tcb_key of 24 { client at 0:0 16 times u8"),
            "{layout}"
        );
        assert!(layout.contains("owner at 128:0 u16"), "{layout}");
    }
}
