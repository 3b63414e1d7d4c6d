//! Redirectable sockets: the BPF programs by which a socket says in the TCP handshake that it speaks EOP, and learns
//! whether its peer does. They are attached to one control group at a time and serve its processes; nothing else of baton
//! is needed.

use std::{
    fs::{self, File},
    io,
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd as _},
    path::{Path, PathBuf},
};

use baton_abi::{EOP_COUNTER_NAMES, EOP_COUNTERS};
use libbpf_rs::{
    MapHandle, libbpf_sys as raw,
    skel::{OpenSkel as _, SkelBuilder as _},
};

use crate::{
    Error,
    kernel::Part,
    loading::{
        load::{collect_messages, explain},
        pins::Pins,
    },
    maps::{map_error, per_cpu, read},
    sys::{self, Hook},
};

skeleton!(skeleton, "/eop.skel.rs");

/// The directory in which the programs and their counters are pinned.
#[derive(Clone, Debug)]
pub struct EopPins {
    directory: PathBuf,
}

impl Default for EopPins {
    fn default() -> Self {
        Self::at("/sys/fs/bpf/baton-eop".into())
    }
}

impl EopPins {
    /// Names a directory in a BPF file system.
    pub const fn at(directory: PathBuf) -> Self {
        Self { directory }
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
        let opened = File::open(group).map_err(|cause| Error::AttachGroup {
            program: "announce",
            group: group.to_owned(),
            cause,
        })?;

        self.detach()?;
        let attached = self.attach_to(&opened, group, &loaded);
        if attached.is_err() {
            // The error that led here is the one to report.
            let _ = self.detach();
        }
        attached
    }

    fn attach_to(
        &self,
        opened: &File,
        group: &Path,
        loaded: &skeleton::EopSkel<'_>,
    ) -> Result<(), Error> {
        let target = opened.as_raw_fd().cast_unsigned();
        let pins = |cause| self.failed(cause);
        Pins::new(&self.directory).prepare()?;
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
        for (name, program, hook) in links {
            let link = sys::link_create(program, target, hook);
            let link = link.map_err(|cause| Error::AttachGroup {
                program: name,
                group: group.to_owned(),
                cause,
            })?;
            sys::pin(link.as_fd(), &self.directory.join(name)).map_err(pins)?;
        }
        // The counters come last: where they are, all is attached.
        let counters = loaded.maps.eop_counters.as_fd();
        sys::pin(counters, &self.directory.join("counters")).map_err(pins)
    }

    /// Takes the programs away. Connections that were made stay as they are. Safe to do twice.
    ///
    /// # Errors
    /// [`Error::Pins`].
    pub fn detach(&self) -> Result<(), Error> {
        match fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(error)),
            _ => Ok(()),
        }
    }

    /// The value of each counter since the programs were attached. `None` if they are not attached.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn counters(&self) -> Result<Option<Vec<(String, u64)>>, Error> {
        const MAP: &str = "eop_counters";
        let path = self.directory.join("counters");
        if !path.try_exists().map_err(|cause| self.failed(cause))? {
            return Ok(None);
        }
        let map = MapHandle::from_pinned_path(path).map_err(|error| map_error(MAP, error))?;
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

    fn failed(&self, cause: io::Error) -> Error {
        Error::Pins {
            path: self.directory.clone(),
            cause,
        }
    }
}
