//! Loads the programs: turns the skeleton that was generated at compile time into plain descriptors and maps.

use std::{
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd},
    sync::Arc,
};

use baton_abi::{OWNER_KEEPS, ROLE_CS, ROLE_DS, ROLE_SWITCH};
use libbpf_rs::{
    MapCore as _, MapFlags, MapHandle,
    skel::{OpenSkel as _, SkelBuilder as _},
};

use tracing::{debug, warn};

use crate::{
    ConnectionServer, DataServer, Error, Pins, Routing, Switch, XdpChoice,
    kernel::{
        self, Cause, Part,
        messages::{collect_messages, take_messages},
    },
    loading::layout::{self, Wanted},
    maps::CommonMaps,
};

skeleton!(skeleton, "/baton.skel.rs");

/// What to load.
#[derive(Clone, Debug)]
pub struct Options {
    /// `ROLE_CS | ROLE_DS`, or `ROLE_SWITCH`, of the ABI: which programs this node runs.
    pub roles: u32,
    /// Size of the TCP table of a connection server, entries.
    pub flows: u32,
    /// How many requests a connection server keeps, for responses that can be resumed.
    pub kept_requests: u32,
    /// How the program of a connection server or switch is to run.
    pub xdp: XdpChoice,
    /// Whether the XDP programs are to take frames in several pieces: see [`crate::wants_frags`].
    pub frags: bool,
    /// Where maps are pinned and found again. With `None` they live as long as this process, as in tests.
    pub pins: Option<Pins>,
}

/// The loaded programs and their maps, by role, attached to nothing yet.
pub struct Programs {
    /// The connection server's programs and maps, with role CS.
    pub connection_server: Option<ConnectionServer>,
    /// The data server's programs and maps, with role DS.
    pub data_server: Option<DataServer>,
    /// The switch's program and maps, with that role.
    pub switch: Option<Switch>,
    /// The names of pinned maps that could not be taken over, because another version wrote them in another layout.
    pub made_anew: Vec<String>,
    /// The maps by which requests are routed, with role CS or DS.
    pub(crate) routing: Option<Arc<Routing>>,
    pub(crate) common: Arc<CommonMaps>,
}

/// include/uapi/linux/bpf.h
const BPF_F_XDP_HAS_FRAGS: u32 = 1 << 5;
/// Maps that only the connection server's programs use; a pure data server need not pay for them.
const CS_MAPS: [&str; 12] = [
    "once_more",
    "tcbs",
    "strays",
    "claims",
    "claim_sources",
    "claim_refusals",
    "believed",
    "used_cookies",
    "held",
    "flows",
    "orphans",
    "quiet_points",
];
/// Maps by which connection servers and the owners of connections route requests, and maps of requests.
const ROUTING_MAPS: [&str; 12] = [
    "pools",
    "hosts",
    "routes",
    "large",
    "texts",
    "turns",
    "choices",
    "tallies",
    "route_ids",
    "answers",
    "resting",
    "kept_requests",
];
/// Maps that only the data server's program uses.
const DS_MAPS: [&str; 21] = [
    "hearings",
    "peers",
    "senders",
    "rings",
    "handovers",
    "receive_windows",
    "expected",
    "telling",
    "responses",
    "response_texts",
    "doors",
    "doors_begun",
    "door_tallies",
    "passing",
    "have_read",
    "keeping",
    "early",
    "asking",
    "yields",
    "yielding_until",
    "seen_heads",
];
/// Maps that only the switch's program uses.
const SWITCH_MAPS: [&str; 2] = ["places", "begun"];

impl Programs {
    /// Loads the programs for `options.roles`. Pinned maps of an earlier process are taken over with
    /// all they hold; others are made and pinned.
    ///
    /// # Errors
    /// [`Error::Layout`] or [`Error::DoorLayout`] if connections are in maps that another version wrote in another
    /// layout, or that have another size. Nothing is changed then. [`Error::Load`], [`Error::Pins`].
    pub fn load(options: &Options) -> Result<Self, Error> {
        collect_messages();
        if let Some(pins) = &options.pins {
            pins.prepare()?;
        }

        let cs = options.roles & ROLE_CS != 0;
        let ds = options.roles & ROLE_DS != 0;
        let switch = options.roles & ROLE_SWITCH != 0;
        let mut storage = MaybeUninit::uninit();
        let mut open = skeleton::BatonSkelBuilder::default()
            .open(&mut storage)
            .map_err(load_error)?;
        open.progs.baton_cs.set_autoload(cs);
        open.progs.baton_pass_up.set_autoload(cs || ds);
        open.progs.baton_sweep.set_autoload(cs);
        open.progs.baton_find_flows.set_autoload(cs);
        open.progs.baton_change.set_autoload(cs);
        open.progs.baton_move.set_autoload(cs);
        open.progs.baton_ds.set_autoload(ds);
        open.progs.baton_window.set_autoload(ds);
        open.progs.baton_head.set_autoload(ds);
        open.progs.baton_relay_answer.set_autoload(ds);
        open.progs.baton_switch.set_autoload(switch);
        if options.frags {
            open.progs.baton_cs.set_flags(BPF_F_XDP_HAS_FRAGS);
            open.progs.baton_switch.set_flags(BPF_F_XDP_HAS_FRAGS);
        }
        let constants = open.maps.rodata_data.as_deref_mut();
        constants
            .ok_or_else(|| load_error("the object has no constants"))?
            .is_also_cs = cs.into();
        open.maps
            .tcbs
            .set_max_entries(options.flows)
            .map_err(load_error)?;
        let mut pinned = Vec::new();
        open.maps
            .kept_requests
            .set_max_entries(if cs {
                options.kept_requests
            } else {
                OWNER_KEEPS
            })
            .map_err(load_error)?;
        for mut map in open.open_object_mut().maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            let unused = |maps: &[&str], used: bool| maps.contains(&name.as_str()) && !used;
            if unused(&CS_MAPS, cs)
                || unused(&ROUTING_MAPS, cs || ds)
                || unused(&DS_MAPS, ds)
                || unused(&SWITCH_MAPS, switch)
            {
                map.set_autocreate(false).map_err(load_error)?;
            } else if let Some(pins) = &options.pins
                && !name.starts_with('.')
                && !name.contains(".rodata")
                && name != "once_more"
            {
                pinned.push(Wanted::of(&map));
                map.set_pin_path(pins.map(&name)).map_err(load_error)?;
            }
        }
        let made_anew = match &options.pins {
            Some(pins) => layout::settle(pins, options.roles, &pinned)?,
            None => Vec::new(),
        };

        let loaded = open
            .load()
            .map_err(|error| explain(&error, &Part::of_roles(options.roles)))?;
        let program = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map_err(load_error);
        let map = |map: &libbpf_rs::MapMut<'_>| MapHandle::try_from(map).map_err(load_error);
        let (progs, maps) = (&loaded.progs, &loaded.maps);
        let common = Arc::new(CommonMaps {
            settings: map(&maps.settings)?,
            counters: map(&maps.counters)?,
            services: map(&maps.services)?,
            stale_senders: map(&maps.stale_senders)?,
            refused_nodes: map(&maps.refused_nodes)?,
            peer_keys: map(&maps.peer_keys)?,
            data_servers: map(&maps.data_servers)?,
            channels: map(&maps.channels)?,
            send_buffer: map(&maps.send_buffer)?,
        });
        let mut programs = Self {
            connection_server: None,
            data_server: None,
            switch: None,
            made_anew,
            routing: None,
            common: Arc::clone(&common),
        };
        if switch {
            programs.switch = Some(Switch {
                xdp: program(progs.baton_switch.as_fd())?,
                places: map(&maps.places)?,
            });
        }
        if !cs && !ds {
            return Ok(programs);
        }
        let routing = Arc::new(Routing {
            pools: map(&maps.pools)?,
            hosts: map(&maps.hosts)?,
            routes: map(&maps.routes)?,
            large: map(&maps.large)?,
            choices: map(&maps.choices)?,
            tallies: map(&maps.tallies)?,
            route_ids: map(&maps.route_ids)?,
            answers: map(&maps.answers)?,
            resting: map(&maps.resting)?,
            kept_requests: map(&maps.kept_requests)?,
        });
        programs.routing = Some(Arc::clone(&routing));
        if cs {
            let xdp = progs.baton_cs.as_fd().as_raw_fd();
            maps.once_more
                .update(&0u32.to_ne_bytes(), &xdp.to_ne_bytes(), MapFlags::ANY)
                .map_err(load_error)?;
            programs.connection_server = Some(ConnectionServer {
                xdp: program(progs.baton_cs.as_fd())?,
                sweep: program(progs.baton_sweep.as_fd())?,
                find_flows: program(progs.baton_find_flows.as_fd())?,
                change: program(progs.baton_change.as_fd())?,
                moves: program(progs.baton_move.as_fd())?,
                pass_up: program(progs.baton_pass_up.as_fd())?,
                tcbs: map(&maps.tcbs)?,
                flows: map(&maps.flows)?,
                hold: map(&maps.data_hold)?,
                held: map(&maps.held)?,
                orphans: map(&maps.orphans)?,
                _once_more: map(&maps.once_more)?,
                routing: Arc::clone(&routing),
                common: Arc::clone(&common),
            });
        }
        if ds {
            programs.data_server = Some(DataServer {
                ingress: program(progs.baton_ds.as_fd())?,
                egress: program(progs.baton_head.as_fd())?,
                relay_answer: program(progs.baton_relay_answer.as_fd())?,
                window: program(progs.baton_window.as_fd())?,
                pass_up: program(progs.baton_pass_up.as_fd())?,
                peers: map(&maps.peers)?,
                senders: map(&maps.senders)?,
                receive_windows: map(&maps.receive_windows)?,
                rings: map(&maps.rings)?,
                seen_heads: map(&maps.seen_heads)?,
                responses: map(&maps.responses)?,
                doors: map(&maps.doors)?,
                doors_begun: map(&maps.doors_begun)?,
                door_tallies: map(&maps.door_tallies)?,
                keeping: map(&maps.keeping)?,
                have_read: map(&maps.have_read)?,
                early: map(&maps.early)?,
                asking: map(&maps.asking)?,
                routing,
                common,
            });
        }
        Ok(programs)
    }
}

pub(crate) fn load_error(error: impl std::fmt::Display) -> Error {
    Error::Open {
        reason: error.to_string(),
    }
}

/// How many of the verifier's last lines are logged even without debug output.
const LAST_LINES: usize = 8;

/// Why the kernel refused programs of these parts. libbpf says it only in its log.
pub(crate) fn explain(error: &libbpf_rs::Error, parts: &[Part]) -> Error {
    let refusal = kernel::judge(parts, &error.to_string(), take_messages());
    if let Cause::Verifier { .. } = refusal.cause {
        warn!(
            "the verifier's last words:\n{}",
            refusal.last_lines(LAST_LINES)
        );
    }
    debug!("{error}:\n{}", refusal.log);
    Error::Load(Box::new(refusal))
}

#[cfg(test)]
pub mod tests {
    use std::collections::BTreeSet;

    use libbpf_rs::libbpf_sys as raw;

    use super::*;

    /// The helpers that the programs of `bpf/baton.bpf.c` call, including calls in their functions, which a program
    /// has only once it is loaded.
    pub fn helpers_called() -> BTreeSet<raw::bpf_func_id> {
        let mut storage = MaybeUninit::uninit();
        let open = skeleton::BatonSkelBuilder::default().open(&mut storage);
        let loaded = open.and_then(|open| open.load());
        let loaded = loaded.expect("this kernel takes the programs");
        let is_call = |code| u32::from(code) == raw::BPF_JMP | raw::BPF_CALL;
        let progs = &loaded.progs;
        let all = [
            &progs.baton_cs,
            &progs.baton_pass_up,
            &progs.baton_sweep,
            &progs.baton_find_flows,
            &progs.baton_change,
            &progs.baton_move,
            &progs.baton_ds,
            &progs.baton_window,
            &progs.baton_head,
            &progs.baton_relay_answer,
            &progs.baton_switch,
        ];
        let calls = all
            .iter()
            .flat_map(|program| program.insns())
            // A call whose source is 0 calls a helper. Others call functions of the program or of the kernel.
            .filter(|one| is_call(one.code) && one.src_reg() == 0);
        calls.map(|one| one.imm.cast_unsigned()).collect()
    }
}
