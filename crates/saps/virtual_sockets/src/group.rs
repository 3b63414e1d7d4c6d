//! The control group of the programs whose TCP is at the I/O server.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use baton_dataplane::{control_groups, mounts};

use crate::{Error, Result};

/// A control group of version 2. Nothing is limited by it: it only says who belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    path: PathBuf,
    root: PathBuf,
}

impl Group {
    /// Names it after something that no other node of this machine has, as its directory of pins: nodes in
    /// network namespaces share the machine's control groups. [`Group::create`] makes it.
    ///
    /// # Errors
    /// [`Error::NoControlGroups`].
    pub fn named_after(node: &Path) -> Result<Self> {
        let mounts = mounts();
        let root = PathBuf::from(control_groups(&mounts).ok_or(Error::NoControlGroups)?);
        let parts: Vec<_> = node
            .components()
            .filter_map(|part| match part {
                std::path::Component::Normal(part) => Some(part.to_string_lossy()),
                _ => None,
            })
            .collect();
        // A dot would be taken for a file of the kernel's, such as cgroup.procs.
        let name = parts.join("-").replace('.', "-");
        Ok(Self {
            path: root.join(format!("baton-app-{name}")),
            root,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it, if it is not there.
    ///
    /// # Errors
    /// [`Error::Group`].
    pub fn create(&self) -> Result<()> {
        fs::create_dir_all(&self.path).map_err(self.failed("make"))
    }

    /// Moves the calling process into it, and with it what it becomes by exec(2). Sockets that it has already
    /// stay what they are.
    ///
    /// # Errors
    /// [`Error::NoGroup`] if no daemon has made it; [`Error::Group`].
    pub fn enter(&self) -> Result<()> {
        let procs = self.path.join("cgroup.procs");
        match fs::write(procs, "0") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Error::NoGroup(self.path.clone()))
            }
            other => other.map_err(self.failed("enter")),
        }
    }

    /// Whether no process is in it.
    ///
    /// # Errors
    /// [`Error::Group`].
    pub fn is_empty(&self) -> Result<bool> {
        let processes = fs::read_to_string(self.path.join("cgroup.procs"));
        Ok(processes.map_err(self.failed("look into"))?.is_empty())
    }

    /// Removes it, or does nothing if it is gone. Processes in it move up to the root, and are told nothing:
    /// what they open from then on are this node's own sockets.
    ///
    /// # Errors
    /// [`Error::Group`].
    pub fn remove(&self) -> Result<()> {
        let mut last = Ok(());
        for _ in 0..100 {
            let processes = fs::read_to_string(self.path.join("cgroup.procs"));
            for pid in processes.unwrap_or_default().lines() {
                // It may have ended since; if not, the removal below says that the group is busy.
                let _ = fs::write(self.root.join("cgroup.procs"), pid);
            }
            last = match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                other => other,
            };
            if last.is_ok() {
                break;
            }
            // A process that is ending is of the group until it has ended.
            thread::sleep(Duration::from_millis(10));
        }
        last.map_err(self.failed("remove"))
    }

    fn failed(&self, doing: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = self.path.clone();
        move |cause| Error::Group { doing, path, cause }
    }
}
