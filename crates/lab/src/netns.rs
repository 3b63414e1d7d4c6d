//! Network namespaces: made, entered, and removed only if they are the ones that were made.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, setns};
use serde::{Deserialize, Serialize};

use crate::error::{Doing, Error, Result};
use crate::tool;

/// A namespace that the lab made. A name can be given away and taken again; the inode of the
/// namespace that it stood for when it was made tells whether it is still that one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Namespace {
    pub name: String,
    pub inode: u64,
}

impl Namespace {
    /// Makes one. Fails if the name exists.
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

    /// Removes it, or does nothing if it is gone. Another namespace of its name is left alone.
    pub fn remove(&self) -> Result<()> {
        if !self.path().exists() {
            return Ok(());
        }
        if !self.exists() {
            return Err(Error::Foreign(self.name.clone()));
        }
        tool::run(&format!("ip netns del {}", self.name)).map(drop)
    }

    /// Runs `work` on a thread of its own inside the namespace, and waits for it. Sockets it opens
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

    /// Processes that run inside, by number. Whoever started them.
    pub fn processes(&self) -> Vec<u32> {
        crate::process::all_pids()
            .filter(|pid| {
                inode(Path::new(&format!("/proc/{pid}/ns/net"))).is_ok_and(|i| i == self.inode)
            })
            .collect()
    }
}

/// Where a namespace of this name is, if there is one.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new("/run/netns").join(name)
}

fn inode(path: &Path) -> std::io::Result<u64> {
    Ok(path.metadata()?.ino())
}
