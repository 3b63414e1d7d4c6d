//! Makes and enters network namespaces, and removes only those that the lab made.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, setns};
use serde::{Deserialize, Serialize};

use crate::error::{Doing, Error, Result};
use crate::tool;

/// A namespace that the lab made. Its name may be removed and reused by others, so the inode is kept
/// too: it tells whether the name still stands for the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Namespace {
    pub name: String,
    pub inode: u64,
}

impl Namespace {
    /// Makes a namespace. Fails if the name exists.
    pub fn create(name: &str) -> Result<Namespace> {
        if path(name).exists() {
            return Err(Error::Foreign(name.to_owned()));
        }
        tool::run(&format!("ip netns add {name}"))?;
        let inode = inode(&path(name)).doing(|| format!("look at the namespace {name}"))?;
        Ok(Namespace {
            name: name.to_owned(),
            inode,
        })
    }

    pub fn path(&self) -> PathBuf {
        path(&self.name)
    }

    /// Whether the name stands for the namespace that was made.
    pub fn exists(&self) -> bool {
        inode(&self.path()).is_ok_and(|inode| inode == self.inode)
    }

    /// Removes the namespace, or does nothing if it is gone. Another namespace of the same name is left
    /// alone and gives [`Error::Foreign`].
    pub fn remove(&self) -> Result<()> {
        if !self.path().exists() {
            return Ok(());
        }
        if !self.exists() {
            return Err(Error::Foreign(self.name.clone()));
        }
        tool::run(&format!("ip netns del {}", self.name)).map(drop)
    }

    /// Runs `work` on a thread of its own inside the namespace, and waits for it. Sockets that it opens
    /// stay in the namespace wherever they are used later.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let doing = || format!("enter the namespace {}", self.name);
        let file = File::open(self.path()).doing(doing)?;
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                setns(file, CloneFlags::CLONE_NEWNET)?;
                Ok::<T, nix::Error>(work())
            });
            match thread.join() {
                Ok(done) => done.doing(doing),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Sets kernel parameters, named as in /proc/sys.
    pub fn sysctl(&self, settings: &[(&str, &str)]) -> Result<()> {
        // /proc/sys/net shows the namespace of the task that opens it.
        self.within(|| {
            settings.iter().try_for_each(|(name, value)| {
                let path = Path::new("/proc/sys").join(name);
                std::fs::write(&path, value)
                    .doing(|| format!("write {value} to {} in {}", path.display(), self.name))
            })
        })?
    }

    /// The pids of all processes that run inside, whoever started them.
    pub fn processes(&self) -> Vec<u32> {
        crate::process::all_pids()
            .filter(|pid| {
                inode(Path::new(&format!("/proc/{pid}/ns/net"))).is_ok_and(|i| i == self.inode)
            })
            .collect()
    }
}

/// The path that a namespace of this name has, whether it exists or not.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new("/run/netns").join(name)
}

fn inode(path: &Path) -> std::io::Result<u64> {
    Ok(path.metadata()?.ino())
}
