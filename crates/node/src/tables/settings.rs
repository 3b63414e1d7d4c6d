//! Settings of the programs that depend on no service and no data server: keys, clock, limits.

use std::time::Duration;

use anyhow::Result;
use baton_abi::{
    ALSO_MACS, LCCP_OVERHEAD_BYTES, MAX_INTERFACES, NO_DATA_SERVER, SENT_SHIFT, Settings,
};
use baton_config::Key;
use baton_dataplane::{Dataplane, wall_clock_offset};
use baton_net::Link;
use baton_wire::Address;

use super::Tables;
use crate::{local_node::LocalNode, peers::heartbeat::clock_now};

/// IPv4 and TCP headers without options.
const PLAIN_HEADERS: u32 = 40;

impl Tables {
    /// Writes the settings that depend on no service and no data server. Pools that are written later get the same
    /// hash seed.
    pub fn write_settings(&mut self, dataplane: &Dataplane, local: &LocalNode) -> Result<()> {
        let config = &local.config;
        let overhead = PLAIN_HEADERS + LCCP_OVERHEAD_BYTES;
        // A client's packet may leave by any interface, inside a message, so the smallest MTU counts.
        let mtu = local.links.iter().map(|link| link.mtu).min().unwrap_or(0);
        let mss = u16::try_from(mtu.saturating_sub(overhead)).unwrap_or(u16::MAX);
        let mut also_mac = [[0; 6]; ALSO_MACS as usize];
        // The configuration allows no more of them than there is room for.
        for (to, mac) in also_mac.iter_mut().zip(&local.me.also_mac) {
            *to = mac.octets();
        }
        let data_servers = config
            .nodes
            .iter()
            .filter(|node| node.roles.is_ds())
            .count();
        let roles = local.me.roles;
        // The program of a data server hashes only requests that it routes.
        let routes = config.services.iter().any(|service| service.owner_routes());
        let hashes = roles.is_cs() || roles.is_switch() || roles.is_ds() && routes;
        let hash_key = hashes.then(|| config.cluster.hash_key());
        let hash_seed = hash_key.map_or(0, |key| key.seed());
        self.pools.hash_under(hash_seed);
        let settings = Settings {
            cookie_key: [
                cookie_words(local, Some(&config.cluster.key)),
                cookie_words(local, config.cluster.previous_key.as_ref()),
            ],
            hash_key: hash_key.map_or([0; 2], |key| key.words()),
            hash_seed,
            since_ms: since(dataplane, local)?,
            lease: lease(local),
            clock_offset_ns: wall_clock_offset(),
            clock_window_ns: nanoseconds(config.cluster.clock_window),
            stray_grace_ns: nanoseconds(config.cs.stray_grace),
            netns: local.netns,
            address: Address::from(local.address).octets(),
            mss,
            relay_port: self.relay_port,
            resume_port: self.resume_port,
            reader_port: self.reader_port,
            rcv_wscale: config.cluster.window_scale.shift(),
            protocol: config.cluster.protocol.number(),
            roles: roles.bits(),
            also_macs: local.me.also_mac.len() as u8,
            also_mac,
            interfaces: u8::try_from(local.links.len()).unwrap_or(u8::MAX),
            macs: of_all(local, |link| link.mac),
            ifindexes: of_all(local, |link| link.index),
            data_servers: data_servers.try_into().unwrap_or(u16::MAX),
            slot: (self.slot(local.address.into())).unwrap_or(NO_DATA_SERVER as u16), // 65535
            ..Settings::default()
        };
        Ok(dataplane.set_settings(&settings)?)
    }
}

/// Notes that this connection server is in front from now on. Requests that clients sent before may be with a data
/// server already.
pub fn note_front(dataplane: &Dataplane) -> Result<()> {
    let settings = Settings {
        since_ms: milliseconds_now(),
        ..dataplane.settings()?
    };
    Ok(dataplane.set_settings(&settings)?)
}

/// How long a data server may go on sending while it hears no connection server but itself; 0 means forever, because
/// there is no other one. The lease is half of `dead_after`. A connection server that takes this node for dead has not
/// heard it for the whole of `dead_after` and has asked it before (`crates/core/src/liveness.rs`), so this node is silent
/// by then.
fn lease(local: &LocalNode) -> u32 {
    let mut others = (local.config.connection_servers()).filter(|node| node.name != local.me.name);
    if others.next().is_none() {
        return 0;
    }
    let half = nanoseconds(local.config.cs.dead_after / 2) >> SENT_SHIFT;
    u32::try_from(half).unwrap_or(u32::MAX)
}

/// Since when this connection server has been in front, as the programs' maps say, which may be older than this daemon.
/// If the maps are new, they know no connections from before, and this is the present time.
fn since(dataplane: &Dataplane, local: &LocalNode) -> Result<u32> {
    if !local.me.roles.is_cs() {
        return Ok(0);
    }
    let before = dataplane.settings()?.since_ms;
    Ok(if before == 0 {
        milliseconds_now()
    } else {
        before
    })
}

/// The wall clock in milliseconds, modulo 2^32, as the program's timestamps count. It is never 0.
fn milliseconds_now() -> u32 {
    let now = clock_now().as_nanos() / 1_000_000;
    (now as u32).max(1)
}

/// Some value of each interface. Elements that are left over repeat the value of the first interface.
fn of_all<T: Copy>(local: &LocalNode, of: impl Fn(&Link) -> T) -> [T; MAX_INTERFACES as usize] {
    std::array::from_fn(|at| of(local.links.get(at).unwrap_or(&local.link)))
}

/// The key for cookies that a cluster key gives. It is 0 except on connection servers, because only they make cookies.
fn cookie_words(local: &LocalNode, key: Option<&Key>) -> [u64; 2] {
    key.filter(|_| local.me.roles.is_cs())
        .and_then(Key::secret)
        .map_or([0; 2], |secret| secret.cookie().words())
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
