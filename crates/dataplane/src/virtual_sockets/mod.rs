//! Virtual TCP sockets: the programs of a control group (`bpf/app.bpf.c`), attached and pinned, and their maps.

mod events;
mod maps;
mod options;

use std::{
    fs::File,
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd as _, OwnedFd},
    path::Path,
};

use baton_abi::APP_COUNTER_NAMES;
use libbpf_rs::{
    MapHandle, libbpf_sys as raw,
    skel::{OpenSkel as _, SkelBuilder as _},
};

pub use self::{
    events::{AppCall, AppEvent, AppEvents},
    maps::{AppListener, AppMaps, AppTaken, app_is_alive},
    options::AppOptions,
};
use crate::{
    Error, Pins,
    kernel::{Part, messages::collect_messages},
    loading::{
        layout::{self, Wanted},
        load::{explain, load_error},
    },
    sys::{self, Hook},
};

skeleton!(skeleton, "/app.skel.rs");

/// The programs and maps of a control group. They end when this is dropped, unless they are pinned.
pub struct App {
    programs: Vec<(&'static str, raw::bpf_attach_type, OwnedFd)>,
    links: Vec<OwnedFd>,
    maps: AppMaps,
    events: MapHandle,
}

impl App {
    /// Loads the programs. Pinned maps of an earlier process are taken over with all they hold.
    ///
    /// # Errors
    /// [`Error::AppLayout`] if another version noted the sockets of the control group in another layout. Nothing is
    /// changed then. [`Error::Load`], [`Error::Pins`].
    pub fn load(pins: Option<&Pins>) -> Result<Self, Error> {
        collect_messages();
        if let Some(pins) = pins {
            pins.prepare()?;
        }
        let mut storage = MaybeUninit::uninit();
        let mut open =
            (skeleton::AppSkelBuilder::default().open(&mut storage)).map_err(load_error)?;
        if let Some(pins) = pins {
            let mut pinned = Vec::new();
            for mut map in open.open_object_mut().maps_mut() {
                let name = map.name().to_string_lossy().into_owned();
                if name.starts_with("app_") {
                    pinned.push(Wanted::of(&map));
                    map.set_pin_path(pins.map(&name)).map_err(load_error)?;
                }
            }
            layout::settle_app(pins, &pinned)?;
        }
        let loaded = open
            .load()
            .map_err(|error| explain(&error, &[Part::Sockets]))?;
        macro_rules! program {
            ($program:ident, $hook:ident) => {
                (
                    &stringify!($program)["baton_".len()..],
                    raw::$hook,
                    loaded.progs.$program.as_fd(),
                )
            };
        }
        let programs = [
            program!(baton_app_bind4, BPF_CGROUP_INET4_BIND),
            program!(baton_app_bind6, BPF_CGROUP_INET6_BIND),
            program!(baton_app_sockname4, BPF_CGROUP_INET4_GETSOCKNAME),
            program!(baton_app_sockname6, BPF_CGROUP_INET6_GETSOCKNAME),
            program!(baton_app_peername4, BPF_CGROUP_INET4_GETPEERNAME),
            program!(baton_app_peername6, BPF_CGROUP_INET6_GETPEERNAME),
            program!(baton_app_create, BPF_CGROUP_INET_SOCK_CREATE),
            program!(baton_app_events, BPF_CGROUP_SOCK_OPS),
            program!(baton_app_option, BPF_CGROUP_SETSOCKOPT),
            // A call must not be led to the agent before its SYN is held: connect comes last.
            program!(baton_app_hold, BPF_CGROUP_INET_EGRESS),
            program!(baton_app_connect4, BPF_CGROUP_INET4_CONNECT),
            program!(baton_app_connect6, BPF_CGROUP_INET6_CONNECT),
        ];
        let programs = programs.into_iter().map(|(name, hook, program)| {
            Ok((
                name,
                hook,
                program.try_clone_to_owned().map_err(load_error)?,
            ))
        });
        let handle = |map: &libbpf_rs::MapMut<'_>| MapHandle::try_from(map).map_err(load_error);
        Ok(Self {
            programs: programs.collect::<Result<_, Error>>()?,
            links: Vec::new(),
            maps: AppMaps {
                settings: handle(&loaded.maps.app_settings)?,
                counters: handle(&loaded.maps.app_counters)?,
                direct: handle(&loaded.maps.app_direct)?,
                cluster: handle(&loaded.maps.app_cluster)?,
                taken: handle(&loaded.maps.app_taken)?,
                listeners: handle(&loaded.maps.app_listeners)?,
                arrivals: handle(&loaded.maps.app_arrivals)?,
                answers: handle(&loaded.maps.app_answers)?,
            },
            events: handle(&loaded.maps.app_events)?,
        })
    }

    /// Leaves alone what programs listen on: only what they connect to goes to the agent.
    pub fn only_calls(&mut self) {
        self.programs.retain(|(_, hook, _)| {
            !matches!(
                *hook,
                raw::BPF_CGROUP_INET4_BIND | raw::BPF_CGROUP_INET6_BIND
            )
        });
    }

    /// Attaches the programs to a control group of version 2. If an earlier process left its links pinned, their
    /// programs are replaced in place.
    ///
    /// # Errors
    /// [`Error::AttachGroup`].
    pub fn attach(&mut self, group: &Path, pins: Option<&Pins>) -> Result<(), Error> {
        for (name, hook, program) in &self.programs {
            let failed = |cause| Error::AttachGroup {
                program: name,
                group: group.to_owned(),
                cause,
            };
            let pin = pins.map(|pins| pins.link(name));
            if let Some(pin) = &pin
                && let Ok(link) = sys::open_pin(pin)
            {
                sys::link_update(link.as_fd(), program.as_fd()).map_err(failed)?;
                self.links.push(link);
                continue;
            }
            let target = File::open(group).map_err(failed)?;
            let target = target.as_raw_fd().cast_unsigned();
            let link = sys::link_create(program.as_fd(), target, Hook::ControlGroup(*hook))
                .map_err(failed)?;
            if let Some(pin) = &pin {
                sys::pin(link.as_fd(), pin).map_err(failed)?;
            }
            self.links.push(link);
        }
        Ok(())
    }

    /// Lets go of the links, so that removing their pins ends the programs.
    pub fn release(&mut self) {
        self.links.clear();
    }

    /// A second handle to the maps, which lives as long as its holder.
    ///
    /// # Errors
    /// [`Error::Map`] if there is no file descriptor left.
    pub fn maps(&self) -> Result<AppMaps, Error> {
        self.maps.try_clone()
    }

    /// The reader's end of the events. At most one may be in use.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn events(&self) -> Result<AppEvents, Error> {
        AppEvents::over(&self.events)
    }
}

/// The metric's label of a counter, such as `app_connect`.
pub fn app_counter_name(index: u32) -> Option<String> {
    let (name, _) = APP_COUNTER_NAMES
        .iter()
        .find(|(_, value)| *value == index)?;
    Some(name.strip_prefix("COUNTER_")?.to_lowercase())
}
