//! The directory in a BPF file system that keeps maps and links alive without the daemon.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use nix::{
    mount::{MsFlags, mount},
    sys::statfs::{BPF_FS_MAGIC, statfs},
};

use crate::Error;

/// How the names of pinned links begin; no map's does.
const LINK: &str = "link_";

/// A node's pins: one directory, everything in it ours.
#[derive(Clone, Debug)]
pub struct Pins {
    dir: PathBuf,
}

impl Pins {
    /// Names the directory; [`Pins::prepare`] makes it.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes the directory; mounts a BPF file system at `/sys/fs/bpf` if that is where it should be
    /// and none is there.
    pub fn prepare(&self) -> Result<(), Error> {
        self.try_prepare().map_err(|source| Error::Pins {
            path: self.dir.clone(),
            source,
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
        self.dir.join(format!("{LINK}{program}"))
    }

    /// Removes the pin of a program's link, if there is one: without anybody else who holds it, the program
    /// is attached no more.
    pub(crate) fn forget_link(&self, program: &str) -> Result<(), Error> {
        let path = self.link(program);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(Error::Pins { path, source })
            }
            _ => Ok(()),
        }
    }

    /// Removes the pins of all links: without anybody else who holds them, no program is attached any more. The maps
    /// stay, with all they hold.
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

    /// Of all that is pinned; nothing where there is no directory.
    fn names(&self) -> Result<Vec<String>, Error> {
        let failed = |source| Error::Pins {
            path: self.dir.clone(),
            source,
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

    /// Removes the pin of one.
    pub(crate) fn forget_map(&self, name: &str) -> Result<(), Error> {
        let path = self.map(name);
        fs::remove_file(&path).map_err(|source| Error::Pins { path, source })
    }

    /// Removes every pin, and with them programs and maps, unless something else holds them. Goes on
    /// past errors and returns them all.
    pub fn remove(&self) -> Vec<Error> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
            Err(source) => {
                return vec![Error::Pins {
                    path: self.dir.clone(),
                    source,
                }];
            }
        };
        let mut errors: Vec<Error> = entries
            .filter_map(|entry| entry.and_then(|entry| fs::remove_file(entry.path())).err())
            .map(|source| Error::Pins {
                path: self.dir.clone(),
                source,
            })
            .collect();
        if let Err(source) = fs::remove_dir(&self.dir) {
            errors.push(Error::Pins {
                path: self.dir.clone(),
                source,
            });
        }
        errors
    }
}
