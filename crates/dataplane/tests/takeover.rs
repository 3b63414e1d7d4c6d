//! What the next daemon takes over of pinned maps, and what it refuses. Needs root, and a BPF file system.

use std::{
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use baton_abi::{ROLE_CS, ROLE_DS, Settings, Tcb, TcbKey};
use baton_dataplane::{ConnectionServer, Dataplane, Error, Options, Pins};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};

const FLOWS: u32 = 1024;

/// A directory of pins that is removed when the test ends, however it ends.
struct MaglevSlot(PathBuf);

impl MaglevSlot {
    fn new(test: &str) -> Self {
        Self(format!("/sys/fs/bpf/baton-test-{}-{test}", std::process::id()).into())
    }

    fn pins(&self) -> Pins {
        Pins::new(&self.0)
    }

    fn load(&self, roles: u32, flows: u32) -> Result<Dataplane, Error> {
        Dataplane::load(&Options {
            roles,
            flows,
            kept_requests: 1024,
            xdp: baton_dataplane::XdpChoice::Auto,
            frags: false,
            pins: Some(self.pins()),
        })
    }

    /// Makes a map look like one of another version.
    fn written_otherwise(&self, map: &str) -> Result<()> {
        let record = MapHandle::from_pinned_path(self.0.join("layouts"))?;
        let mut key = [0; 16];
        key[..map.len()].copy_from_slice(map.as_bytes());
        let known = record.lookup(&key, MapFlags::ANY)?;
        known.with_context(|| format!("nothing is written down of {map}"))?;
        Ok(record.update(&key, &[0; 8], MapFlags::ANY)?)
    }
}

impl Drop for MaglevSlot {
    fn drop(&mut self) {
        for error in self.pins().remove() {
            eprintln!("{error}");
        }
    }
}

fn key() -> TcbKey {
    TcbKey {
        be_client_port: 4711,
        ..TcbKey::default()
    }
}

fn connection() -> Tcb {
    Tcb {
        owner: 3,
        ..Tcb::default()
    }
}

/// The text of the refusal.
fn refused(loaded: Result<Dataplane, Error>) -> Result<String> {
    match loaded {
        Err(error @ (Error::Layout { .. } | Error::DoorLayout { .. })) => Ok(error.to_string()),
        Err(other) => Err(other.into()),
        Ok(_) => bail!("it was taken over"),
    }
}

/// The part of the programs that only a connection server has. They must be loaded as a connection server.
fn table_of(dataplane: &Dataplane) -> &ConnectionServer {
    (dataplane.as_connection_server()).expect("loaded as a connection server")
}

#[test]
fn the_same_version_takes_everything_over() -> Result<()> {
    let place = MaglevSlot::new("same");
    let first = place.load(ROLE_CS, FLOWS)?;
    table_of(&first).set_tcb(&key(), &connection())?;
    drop(first);
    let next = place.load(ROLE_CS, FLOWS)?;
    assert_eq!(next.made_anew(), [""; 0]);
    assert_eq!(table_of(&next).tcb(&key())?, Some(connection()));
    Ok(())
}

#[test]
fn what_the_daemon_fills_is_made_anew_and_connections_stay() -> Result<()> {
    let place = MaglevSlot::new("anew");
    let first = place.load(ROLE_CS, FLOWS)?;
    table_of(&first).set_tcb(&key(), &connection())?;
    let settings = Settings {
        stray_grace_ns: 7,
        ..Settings::default()
    };
    first.set_settings(&settings)?;
    place.written_otherwise("settings")?;
    place.written_otherwise("counters")?;
    let next = place.load(ROLE_CS, FLOWS)?;
    let mut anew = next.made_anew().to_vec();
    anew.sort();
    assert_eq!(anew, ["counters", "settings"]);
    assert_eq!(
        next.settings()?,
        Settings::default(),
        "nothing of it is read"
    );
    assert_eq!(first.settings()?, settings, "who runs has what it had");
    assert_eq!(table_of(&next).tcb(&key())?, Some(connection()));
    // From here on the maps are this version's.
    assert_eq!(place.load(ROLE_CS, FLOWS)?.made_anew(), [""; 0]);
    Ok(())
}

#[test]
fn connections_in_another_layout_are_refused_and_nothing_changes() -> Result<()> {
    let place = MaglevSlot::new("refused");
    let first = place.load(ROLE_CS, FLOWS)?;
    table_of(&first).set_tcb(&key(), &connection())?;
    for map in ["tcbs", "data_servers", "counters"] {
        place.written_otherwise(map)?;
    }
    let before = ids(&place.0)?;
    let said = refused(place.load(ROLE_CS, FLOWS))?;
    assert!(
        said.contains("data_servers, tcbs") || said.contains("tcbs, data_servers"),
        "{said}"
    );
    assert!(
        said.contains("--fresh") && said.contains("teardown"),
        "{said}"
    );
    assert!(!said.contains("counters"), "they are no hindrance: {said}");
    assert_eq!(
        ids(&place.0)?,
        before,
        "not even what could be made anew was"
    );

    place.pins().forget_maps()?;
    let fresh = place.load(ROLE_CS, FLOWS)?;
    assert_eq!(table_of(&fresh).tcb(&key())?, None);
    assert_eq!(table_of(&first).tcb(&key())?, Some(connection()));
    Ok(())
}

#[test]
fn another_size_of_the_table_is_refused_as_such() -> Result<()> {
    let place = MaglevSlot::new("size");
    drop(place.load(ROLE_CS, FLOWS)?);
    let said = refused(place.load(ROLE_CS, 2 * FLOWS))?;
    assert!(said.contains("tcbs have another size"), "{said}");
    drop(place.load(ROLE_CS, FLOWS)?);
    Ok(())
}

#[test]
fn maps_of_which_nothing_is_written_down_are_not_read() -> Result<()> {
    let place = MaglevSlot::new("unknown");
    drop(place.load(ROLE_CS, FLOWS)?);
    std::fs::remove_file(place.0.join("layouts"))?;
    let said = refused(place.load(ROLE_CS, FLOWS))?;
    assert!(said.contains("tcbs"), "{said}");
    Ok(())
}

#[test]
fn doors_in_another_layout_are_refused_and_nothing_changes() -> Result<()> {
    let place = MaglevSlot::new("doors");
    drop(place.load(ROLE_DS, FLOWS)?);
    for map in ["doors", "responses"] {
        place.written_otherwise(map)?;
        let before = ids(&place.0)?;
        let said = refused(place.load(ROLE_DS, FLOWS))?;
        assert!(said.contains(map) && said.contains("drain"), "{said}");
        assert_eq!(ids(&place.0)?, before);
    }
    place.pins().forget_maps()?;
    place.load(ROLE_DS, FLOWS)?;
    Ok(())
}

#[test]
fn a_data_server_loses_nothing_else_in_maps() -> Result<()> {
    let place = MaglevSlot::new("ds");
    drop(place.load(ROLE_DS, FLOWS)?);
    place.written_otherwise("data_servers")?;
    let next = place.load(ROLE_DS, FLOWS)?;
    assert_eq!(next.made_anew(), ["data_servers"]);
    Ok(())
}

/// The kernel's ids of the pinned maps, with their names.
fn ids(directory: &Path) -> Result<Vec<(String, u32)>> {
    let mut ids = Vec::new();
    for entry in std::fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()? {
        let map = MapHandle::from_pinned_path(entry.path())?;
        let name = entry.file_name().to_string_lossy().into_owned();
        ids.push((name, map.info()?.info.id));
    }
    ids.sort();
    Ok(ids)
}
