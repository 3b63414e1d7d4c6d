//! Programs that need no node. Their pins, in a directory of their own, keep them attached and lead back to their
//! counters.

use std::{
    fs::{self, File},
    io,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use libbpf_rs::MapHandle;

use crate::{
    Error,
    loading::pins::Pins,
    maps::map_error,
    sys::{self, Hook},
};

/// The name of the pin of the counters.
const COUNTERS: &str = "counters";

/// The directory with the pins, in a BPF file system.
#[derive(Clone, Debug)]
pub(crate) struct StandalonePins(PathBuf);

impl StandalonePins {
    pub const fn at(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// Makes the directory, as [`Pins::prepare`] does.
    pub fn prepare(&self) -> Result<(), Error> {
        Pins::new(&self.0).prepare()
    }

    /// Detaches what was attached before, and attaches by `attach` what is to be attached now. The counters are pinned
    /// last: where they are, all is attached. After an error nothing is attached.
    pub fn attach(
        &self,
        attach: impl FnOnce() -> Result<(), Error>,
        counters: BorrowedFd<'_>,
    ) -> Result<(), Error> {
        self.detach()?;
        let attached = (self.prepare())
            .and_then(|()| attach())
            .and_then(|()| self.pin(counters, COUNTERS));
        if attached.is_err() {
            // The error that led here is the one to report.
            let _ = self.detach();
        }
        attached
    }

    /// Pins a link.
    pub fn pin(&self, object: BorrowedFd<'_>, name: &str) -> Result<(), Error> {
        sys::pin(object, &self.0.join(name)).map_err(|cause| self.failed(cause))
    }

    /// Takes the programs away. Safe to do twice.
    pub fn detach(&self) -> Result<(), Error> {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(error)),
            _ => Ok(()),
        }
    }

    /// The counters, which are in the map with this name. `None` if the programs are not attached.
    pub fn counters(&self, map: &'static str) -> Result<Option<MapHandle>, Error> {
        let path = self.0.join(COUNTERS);
        if !path.try_exists().map_err(|cause| self.failed(cause))? {
            return Ok(None);
        }
        let found = MapHandle::from_pinned_path(path);
        found.map(Some).map_err(|error| map_error(map, error))
    }

    fn failed(&self, cause: io::Error) -> Error {
        Error::Pins {
            path: self.0.clone(),
            cause,
        }
    }
}

/// A control group of version 2, to which programs are attached.
pub(crate) struct OpenGroup<'a> {
    path: &'a Path,
    opened: File,
}

impl<'a> OpenGroup<'a> {
    /// Opens the control group. `program` is the one that an error names.
    pub fn open(path: &'a Path, program: &'static str) -> Result<Self, Error> {
        let opened = File::open(path).map_err(|cause| failed(path, program, cause))?;
        Ok(Self { path, opened })
    }

    /// Attaches a program, and returns its link.
    pub fn attach(
        &self,
        name: &'static str,
        program: BorrowedFd<'_>,
        hook: Hook,
    ) -> Result<OwnedFd, Error> {
        let target = self.opened.as_fd().as_raw_fd().cast_unsigned();
        sys::link_create(program, target, hook).map_err(|cause| failed(self.path, name, cause))
    }
}

fn failed(group: &Path, program: &'static str, cause: io::Error) -> Error {
    Error::AttachGroup {
        program,
        group: group.to_owned(),
        cause,
    }
}
