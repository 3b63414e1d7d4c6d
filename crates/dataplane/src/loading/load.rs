//! Loading: compile-time skeleton in, plain descriptors and maps out.

use std::{
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd as _, OwnedFd},
    sync::Once,
};

use baton_abi::{OWNER_KEEPS, ROLE_CS, ROLE_DS, ROLE_SWITCH};
use libbpf_rs::{
    MapCore as _, MapFlags, MapHandle, PrintLevel,
    skel::{OpenSkel as _, SkelBuilder as _},
};

use tracing::{debug, warn};

use crate::{
    Error, Pins, XdpChoice,
    kernel::{self, Cause, Part},
    loading::layout::{self, Wanted},
    maps::Maps,
    skeleton::BatonSkelBuilder,
};

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
    /// Where maps are pinned and found again. None: they live as long as this process (tests).
    pub pins: Option<Pins>,
}

/// The loaded programs and their maps, attached to nothing yet.
pub struct Programs {
    /// The connection server's XDP program, with role CS.
    pub cs: Option<OwnedFd>,
    /// The switch's XDP program, with that role.
    pub switch: Option<OwnedFd>,
    /// The data server's tcx program, with role DS.
    pub ds: Option<OwnedFd>,
    /// What shows how responses begin, with role DS.
    pub head: Option<OwnedFd>,
    /// Keeps answers to the relay on this host, with role DS.
    pub relay_answer: Option<OwnedFd>,
    /// What gives adopted connections their congestion window, with role DS.
    pub window: Option<OwnedFd>,
    /// Passes frames of user space up to the kernel, with role CS or DS.
    pub pass_up: Option<OwnedFd>,
    /// Expiry of TCB entries, with role CS.
    pub sweep: Option<OwnedFd>,
    /// Pinned maps that could not be taken over, because another version wrote them otherwise.
    pub made_anew: Vec<String>,
    /// Finds entries of a dead data server, with role CS.
    pub muster: Option<OwnedFd>,
    /// Changes one of them, with role CS.
    pub change: Option<OwnedFd>,
    /// Moves one of a data server that drains, with role CS.
    pub moves: Option<OwnedFd>,
    pub(crate) maps: Maps,
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
/// Maps by which requests are routed, by a connection server and by the owners of connections, and those of requests.
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
    "inboxes",
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
    /// [`Error::Layout`] or [`Error::DoorLayout`] if connections are in maps that another version wrote otherwise, or that have
    /// another size: then nothing is changed. [`Error::Load`], [`Error::Pins`].
    pub fn load(options: &Options) -> Result<Self, Error> {
        collect_messages();
        if let Some(pins) = &options.pins {
            pins.prepare()?;
        }

        let cs = options.roles & ROLE_CS != 0;
        let ds = options.roles & ROLE_DS != 0;
        let switch = options.roles & ROLE_SWITCH != 0;
        let mut storage = MaybeUninit::uninit();
        let mut open = BatonSkelBuilder::default()
            .open(&mut storage)
            .map_err(load_error)?;
        open.progs.baton_cs.set_autoload(cs);
        open.progs.baton_pass_up.set_autoload(cs || ds);
        open.progs.baton_sweep.set_autoload(cs);
        open.progs.baton_muster.set_autoload(cs);
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
        let duplicate =
            |fd: std::os::fd::BorrowedFd<'_>| fd.try_clone_to_owned().map_err(load_error);
        let handle = |map: &libbpf_rs::MapMut<'_>| MapHandle::try_from(map).map_err(load_error);
        let only = |used: bool, map: &libbpf_rs::MapMut<'_>| used.then(|| handle(map)).transpose();
        let cs_only = |map: &libbpf_rs::MapMut<'_>| only(cs, map);
        let routing = |map: &libbpf_rs::MapMut<'_>| only(cs || ds, map);
        if cs {
            let program = loaded.progs.baton_cs.as_fd().as_raw_fd();
            loaded
                .maps
                .once_more
                .update(&0u32.to_ne_bytes(), &program.to_ne_bytes(), MapFlags::ANY)
                .map_err(load_error)?;
        }
        Ok(Self {
            cs: cs
                .then(|| duplicate(loaded.progs.baton_cs.as_fd()))
                .transpose()?,
            pass_up: (cs || ds)
                .then(|| duplicate(loaded.progs.baton_pass_up.as_fd()))
                .transpose()?,
            switch: switch
                .then(|| duplicate(loaded.progs.baton_switch.as_fd()))
                .transpose()?,
            ds: ds
                .then(|| duplicate(loaded.progs.baton_ds.as_fd()))
                .transpose()?,
            head: ds
                .then(|| duplicate(loaded.progs.baton_head.as_fd()))
                .transpose()?,
            relay_answer: ds
                .then(|| duplicate(loaded.progs.baton_relay_answer.as_fd()))
                .transpose()?,
            window: ds
                .then(|| duplicate(loaded.progs.baton_window.as_fd()))
                .transpose()?,
            sweep: cs
                .then(|| duplicate(loaded.progs.baton_sweep.as_fd()))
                .transpose()?,
            made_anew,
            muster: cs
                .then(|| duplicate(loaded.progs.baton_muster.as_fd()))
                .transpose()?,
            change: cs
                .then(|| duplicate(loaded.progs.baton_change.as_fd()))
                .transpose()?,
            moves: cs
                .then(|| duplicate(loaded.progs.baton_move.as_fd()))
                .transpose()?,
            maps: Maps {
                settings: handle(&loaded.maps.settings)?,
                counters: handle(&loaded.maps.counters)?,
                services: handle(&loaded.maps.services)?,
                stale_senders: handle(&loaded.maps.stale_senders)?,
                refused_nodes: handle(&loaded.maps.refused_nodes)?,
                peer_keys: handle(&loaded.maps.peer_keys)?,
                data_servers: handle(&loaded.maps.data_servers)?,
                peers: only(ds, &loaded.maps.peers)?,
                senders: only(ds, &loaded.maps.senders)?,
                inboxes: only(ds, &loaded.maps.inboxes)?,
                channels: handle(&loaded.maps.channels)?,
                outbox: handle(&loaded.maps.outbox)?,
                rings: only(ds, &loaded.maps.rings)?,
                seen_heads: only(ds, &loaded.maps.seen_heads)?,
                responses: only(ds, &loaded.maps.responses)?,
                doors: only(ds, &loaded.maps.doors)?,
                doors_begun: only(ds, &loaded.maps.doors_begun)?,
                door_tallies: only(ds, &loaded.maps.door_tallies)?,
                keeping: only(ds, &loaded.maps.keeping)?,
                have_read: only(ds, &loaded.maps.have_read)?,
                early: only(ds, &loaded.maps.early)?,
                asking: only(ds, &loaded.maps.asking)?,
                places: only(switch, &loaded.maps.places)?,
                pools: routing(&loaded.maps.pools)?,
                hosts: routing(&loaded.maps.hosts)?,
                routes: routing(&loaded.maps.routes)?,
                large: routing(&loaded.maps.large)?,
                choices: routing(&loaded.maps.choices)?,
                tallies: routing(&loaded.maps.tallies)?,
                route_ids: routing(&loaded.maps.route_ids)?,
                tcbs: cs_only(&loaded.maps.tcbs)?,
                flows: cs_only(&loaded.maps.flows)?,
                hold: cs_only(&loaded.maps.data_hold)?,
                held: cs_only(&loaded.maps.held)?,
                answers: routing(&loaded.maps.answers)?,
                resting: routing(&loaded.maps.resting)?,
                kept_requests: routing(&loaded.maps.kept_requests)?,
                orphans: cs_only(&loaded.maps.orphans)?,
                _once_more: cs_only(&loaded.maps.once_more)?,
            },
        })
    }
}

pub(crate) fn load_error(error: impl std::fmt::Display) -> Error {
    Error::Open {
        reason: error.to_string(),
    }
}

/// How many of the verifier's last words are for every log.
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

/// From now on what libbpf says is kept for [`explain`].
pub(crate) fn collect_messages() {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        libbpf_rs::set_print(Some((PrintLevel::Warn, collect_message)));
    });
    take_messages();
}

static MESSAGES: std::sync::Mutex<String> = std::sync::Mutex::new(String::new());

fn collect_message(_: PrintLevel, message: String) {
    if let Ok(mut messages) = MESSAGES.lock() {
        messages.push_str(&message);
    }
}

pub(crate) fn take_messages() -> String {
    MESSAGES
        .lock()
        .map(|mut messages| std::mem::take(&mut *messages))
        .unwrap_or_default()
}

#[cfg(test)]
pub mod tests {
    use std::collections::BTreeSet;

    use libbpf_rs::libbpf_sys as raw;

    use super::*;

    /// The helpers that programs of `bpf/baton.bpf.c` call, those in functions of theirs included, which the program
    /// has only once it is loaded.
    pub fn helpers_called() -> BTreeSet<raw::bpf_func_id> {
        let mut storage = MaybeUninit::uninit();
        let open = BatonSkelBuilder::default().open(&mut storage);
        let loaded = open.and_then(|open| open.load());
        let loaded = loaded.expect("this kernel takes the programs");
        let is_call = |code| u32::from(code) == raw::BPF_JMP | raw::BPF_CALL;
        let progs = &loaded.progs;
        let all = [
            &progs.baton_cs,
            &progs.baton_pass_up,
            &progs.baton_sweep,
            &progs.baton_muster,
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
            // A source of 0 is a helper; others are functions of the program or of the kernel.
            .filter(|one| is_call(one.code) && one.src_reg() == 0);
        calls.map(|one| one.imm.cast_unsigned()).collect()
    }
}
