//! Redirectable sockets: the BPF programs by which a socket says in the TCP handshake that it speaks EOP, and learns
//! whether its peer does. They are attached to one control group at a time and serve its processes; nothing else of baton
//! is needed.

use std::{
    mem::MaybeUninit,
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use baton_abi::{EOP_COUNTER_NAMES, EOP_COUNTERS};
use libbpf_rs::{
    libbpf_sys as raw,
    skel::{OpenSkel as _, SkelBuilder as _},
};

use crate::{
    Error,
    kernel::{Part, messages::collect_messages},
    loading::{
        load::explain,
        standalone::{OpenGroup, StandalonePins},
    },
    maps::{per_cpu, read},
    sys::Hook,
};

skeleton!(skeleton, "/eop.skel.rs");

/// The directory in which the programs and their counters are pinned.
#[derive(Clone, Debug)]
pub struct EopPins(StandalonePins);

impl Default for EopPins {
    fn default() -> Self {
        Self::at("/sys/fs/bpf/baton-eop".into())
    }
}

impl EopPins {
    /// Names a directory in a BPF file system.
    pub const fn at(directory: PathBuf) -> Self {
        Self(StandalonePins::at(directory))
    }

    /// Loads the programs and attaches them to `group`, a directory of cgroup v2, until
    /// [`Self::detach`]. What was attached before, even to another group, is detached first. After an error nothing is
    /// attached.
    ///
    /// # Errors
    /// [`Error::Load`], [`Error::Pins`], [`Error::AttachGroup`].
    pub fn attach(&self, group: &Path) -> Result<(), Error> {
        collect_messages();
        let mut storage = MaybeUninit::uninit();
        let loaded = skeleton::EopSkelBuilder::default()
            .open(&mut storage)
            .and_then(skeleton::OpenEopSkel::load)
            .map_err(|error| explain(&error, &[Part::Eop]))?;
        let group = OpenGroup::open(group, "announce")?;
        let links = [
            (
                "announce",
                loaded.progs.eop_announce.as_fd(),
                Hook::ControlGroup(raw::BPF_CGROUP_SETSOCKOPT),
            ),
            (
                "handshake",
                loaded.progs.eop_handshake.as_fd(),
                Hook::SocketEvents,
            ),
        ];
        let attach = || {
            links.into_iter().try_for_each(|(name, program, hook)| {
                let link = group.attach(name, program, hook)?;
                self.0.pin(link.as_fd(), name)
            })
        };
        self.0.attach(attach, loaded.maps.eop_counters.as_fd())
    }

    /// Takes the programs away. Connections that were made stay as they are. Safe to do twice.
    ///
    /// # Errors
    /// [`Error::Pins`].
    pub fn detach(&self) -> Result<(), Error> {
        self.0.detach()
    }

    /// The value of each counter since the programs were attached. `None` if they are not attached.
    ///
    /// # Errors
    /// [`Error::Map`], [`Error::Pins`].
    pub fn counters(&self) -> Result<Option<Vec<(String, u64)>>, Error> {
        const MAP: &str = "eop_counters";
        let Some(map) = self.0.counters(MAP)? else {
            return Ok(None);
        };
        let mut counters = Vec::new();
        for (name, index) in EOP_COUNTER_NAMES {
            // The last enumerator is their number.
            if *index == EOP_COUNTERS {
                continue;
            }
            let mut sum = 0;
            for value in per_cpu(MAP, &map, *index)? {
                sum += read::<u64>(MAP, &value)?;
            }
            counters.push((name.to_lowercase(), sum));
        }
        Ok(Some(counters))
    }
}
