//! The directory in a BPF file system that keeps maps and links alive without the daemon.

use std::{
    fs, io,
    os::fd::AsFd as _,
    path::{Path, PathBuf},
};

use nix::{
    mount::{MsFlags, mount},
    sys::statfs::{BPF_FS_MAGIC, statfs},
};

use crate::{Error, sys};

/// The names of pinned links begin with this. No map's name does.
const LINK: &str = "link_";

/// A node's pins: one directory, in which everything belongs to this node.
#[derive(Clone, Debug)]
pub struct Pins {
    dir: PathBuf,
    /// The end of the names of links. It is empty for a node's first interface.
    of_interface: String,
}

impl Pins {
    /// Names the directory without making it, which [`Pins::prepare`] does.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            of_interface: String::new(),
        }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes the directory; mounts a BPF file system at `/sys/fs/bpf` if that is where it should be
    /// and none is there.
    pub fn prepare(&self) -> Result<(), Error> {
        self.try_prepare().map_err(|cause| Error::Pins {
            path: self.dir.clone(),
            cause,
        })
    }

    fn try_prepare(&self) -> io::Result<()> {
        let standard = Path::new("/sys/fs/bpf");
        if self.dir.starts_with(standard) && statfs(standard)?.filesystem_type() != BPF_FS_MAGIC {
            mount(
                Some("bpf"),
                standard,
                Some("bpf"),
                MsFlags::empty(),
                None::<&str>,
            )?;
        }
        fs::create_dir_all(&self.dir)?;
        if statfs(&self.dir)?.filesystem_type() != BPF_FS_MAGIC {
            return Err(io::Error::other("not in a BPF file system"));
        }
        Ok(())
    }

    /// Where a map of this name is pinned.
    pub fn map(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Where the link of a program is pinned.
    pub fn link(&self, program: &str) -> PathBuf {
        let end = &self.of_interface;
        self.dir.join(format!("{LINK}{program}{end}"))
    }

    /// The same pins, with the names of the links at `interface`, which is one of `all` interfaces of the node. Links
    /// at the first interface have plain names, so that a node with one interface need not know of others.
    pub(crate) fn at(&self, interface: u32, all: &[u32]) -> Self {
        let of_interface = match all.first() {
            Some(first) if *first != interface => format!("_{interface}"),
            _ => String::new(),
        };
        Self {
            of_interface,
            ..self.clone()
        }
    }

    /// Renames the links of a program that an earlier daemon left at these interfaces to the names that they should
    /// have now, because another interface may have become the first one. So each link is found, and nothing is
    /// detached meanwhile. A link at none of these interfaces keeps some name until [`Pins::forget_links_elsewhere`].
    pub(crate) fn sort_links(&self, program: &str, all: &[u32]) -> Result<(), Error> {
        let (Some(first), plain) = (all.first(), self.link(program)) else {
            return Ok(());
        };
        let named = |interface| self.dir.join(format!("{LINK}{program}_{interface}"));
        let failed = |cause| Error::Pins {
            path: plain.clone(),
            cause,
        };
        let there = match sys::open_pin(&plain) {
            Ok(link) => Some(sys::link_interface(link.as_fd()).map_err(failed)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        if let Some(other) = there.filter(|there| there != first) {
            fs::rename(&plain, named(other)).map_err(failed)?;
        }
        match fs::rename(named(*first), &plain) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        }
    }

    /// Removes the pins of a program's links at interfaces that are not among these. If nobody else holds such a link,
    /// the program is no longer attached there.
    pub(crate) fn forget_links_elsewhere(&self, program: &str, all: &[u32]) -> Result<(), Error> {
        let begins = format!("{LINK}{program}_");
        let failed = |cause| Error::Pins {
            path: self.dir.clone(),
            cause,
        };
        for entry in fs::read_dir(&self.dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let interface =
                (name.to_str()).and_then(|name| name.strip_prefix(&begins)?.parse().ok());
            if interface
                .is_some_and(|interface: u32| !all.iter().skip(1).any(|one| *one == interface))
            {
                fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Removes the pin of a program's link, if there is one. If nobody else holds the link, the program is no longer
    /// attached.
    pub(crate) fn forget_link(&self, program: &str) -> Result<(), Error> {
        let path = self.link(program);
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(Error::Pins { path, cause })
            }
            _ => Ok(()),
        }
    }

    /// Removes the pins of all links. If nobody else holds the links, no program is attached anymore. The maps stay,
    /// with all they hold.
    ///
    /// # Errors
    /// [`Error::Pins`].
    pub fn forget_links(&self) -> Result<(), Error> {
        for name in self.names()? {
            if let Some(program) = name.strip_prefix(LINK) {
                self.forget_link(program)?;
            }
        }
        Ok(())
    }

    /// Whether an earlier daemon left a program attached.
    pub fn holds_links(&self) -> bool {
        ["cs", "ds", "switch"]
            .iter()
            .any(|program| self.link(program).exists())
    }

    /// Removes the pins of all maps, so that the next load makes them anew. The programs that are
    /// attached stay, with the maps that they have.
    pub fn forget_maps(&self) -> Result<(), Error> {
        for name in self.names()? {
            if !name.starts_with(LINK) {
                self.forget_map(&name)?;
            }
        }
        Ok(())
    }

    /// The names of all pins. There are none if there is no directory.
    fn names(&self) -> Result<Vec<String>, Error> {
        let failed = |cause| Error::Pins {
            path: self.dir.clone(),
            cause,
        };
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let name = |entry: io::Result<fs::DirEntry>| {
            entry.map(|entry| entry.file_name().to_string_lossy().into_owned())
        };
        entries.map(name).collect::<io::Result<_>>().map_err(failed)
    }

    /// Removes the pin of one map.
    pub(crate) fn forget_map(&self, name: &str) -> Result<(), Error> {
        let path = self.map(name);
        fs::remove_file(&path).map_err(|cause| Error::Pins { path, cause })
    }

    /// Removes every pin, and with them programs and maps, unless something else holds them. Goes on
    /// past errors and returns them all.
    pub fn remove(&self) -> Vec<Error> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
            Err(cause) => {
                return vec![Error::Pins {
                    path: self.dir.clone(),
                    cause,
                }];
            }
        };
        let mut errors: Vec<Error> = entries
            .filter_map(|entry| entry.and_then(|entry| fs::remove_file(entry.path())).err())
            .map(|cause| Error::Pins {
                path: self.dir.clone(),
                cause,
            })
            .collect();
        if let Err(cause) = fs::remove_dir(&self.dir) {
            errors.push(Error::Pins {
                path: self.dir.clone(),
                cause,
            });
        }
        errors
    }
}
