//! Restores the maps of loaded programs to their state right after loading. This is a hundred times faster than
//! loading the programs again, because the verifier need not look at them.

use std::{
    collections::BTreeSet,
    os::fd::{AsFd as _, OwnedFd},
};

use baton_dataplane::{Dataplane, sys};
use libbpf_rs::{MapCore as _, MapHandle, MapType, RingBufferBuilder};

/// The name of a map with four million elements. A pool uses as many of them as its number of choices says. Each case
/// sets both, so the map is not emptied.
const CHOICES: &str = "choices";

/// Restores the maps of these programs, except constants and [`CHOICES`], to their state right after loading.
pub fn blank(plane: &Dataplane) {
    for id in maps_of(plane) {
        let map = MapHandle::from_map_id(id).unwrap();
        if !is_constant(&map) && map.name() != CHOICES {
            empty(&map);
        }
    }
}

/// The map of these programs with this name.
pub fn map_named(plane: &Dataplane, name: &str) -> MapHandle {
    let mut maps = maps_of(plane)
        .into_iter()
        .map(|id| MapHandle::from_map_id(id).unwrap());
    maps.find(|map| map.name() == name).expect(name)
}

fn maps_of(plane: &Dataplane) -> BTreeSet<u32> {
    let mut all: Vec<&OwnedFd> = Vec::new();
    if let Some(one) = plane.as_connection_server() {
        all.extend([
            &one.xdp,
            &one.sweep,
            &one.find_flows,
            &one.change,
            &one.moves,
        ]);
    }
    if let Some(one) = plane.as_data_server() {
        all.extend([&one.ingress, &one.egress, &one.relay_answer, &one.window]);
    }
    all.extend(plane.as_switch().map(|one| &one.xdp));
    all.into_iter()
        .flat_map(|program| sys::maps_of(program.as_fd()).unwrap())
        .collect()
}

/// Whether the compiler made the map from constants. The kernel shortens the object's name in front of `.rodata`:
/// "baton_bp.rodata".
fn is_constant(map: &MapHandle) -> bool {
    map.name().to_string_lossy().contains(".rodata")
}

fn empty(map: &MapHandle) {
    let (elements, bytes) = (map.max_entries(), map.value_size() as usize);
    match map.map_type() {
        MapType::Array => sys::zero_elements(map.as_fd(), elements, bytes).unwrap(),
        MapType::PercpuArray => {
            let bytes = bytes.next_multiple_of(8) * libbpf_rs::num_possible_cpus().unwrap();
            sys::zero_elements(map.as_fd(), elements, bytes).unwrap();
        }
        MapType::Hash | MapType::LruHash | MapType::LpmTrie => {
            let keys: Vec<_> = map.keys().collect();
            keys.iter().for_each(|key| map.delete(key).unwrap());
        }
        MapType::Queue => while map.lookup_and_delete(&[]).unwrap().is_some() {},
        MapType::RingBuf => {
            let mut ring = RingBufferBuilder::new();
            ring.add(map, |_| 0).unwrap();
            ring.build().unwrap().consume().unwrap();
        }
        // The storage of a socket ends with the socket.
        MapType::SkStorage => (),
        // A program array holds programs, which are not state.
        MapType::ProgArray => (),
        other => panic!("{:?}: how is a {other:?} emptied?", map.name()),
    }
}
