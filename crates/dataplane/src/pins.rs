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
        self.dir.join(format!("link_{program}"))
    }

    /// Whether an earlier daemon left a program attached.
    pub fn holds_links(&self) -> bool {
        ["cs", "ds", "switch"]
            .iter()
            .any(|program| self.link(program).exists())
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
