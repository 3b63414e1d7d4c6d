//! The control group of the programs whose TCP is at the I/O server.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use baton_dataplane::{control_groups, mounts};

use crate::{Error, Result};

/// A control group of version 2. It limits nothing: it only says which processes are programs of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    path: PathBuf,
    root: PathBuf,
}

impl Group {
    /// Names a control group after something that no other node of this machine has, such as its directory of pins:
    /// nodes in network namespaces share the machine's control groups. [`Group::create`] makes the control group.
    ///
    /// # Errors
    /// [`Error::NoControlGroups`] if none of version 2 are mounted.
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
        // The kernel's own files have a dot in their names, such as cgroup.procs.
        let name = parts.join("-").replace('.', "-");
        Ok(Self {
            path: root.join(format!("baton-app-{name}")),
            root,
        })
    }

    /// The control group's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the control group, if it does not exist.
    ///
    /// # Errors
    /// [`Error::Group`] if the directory cannot be made.
    pub fn create(&self) -> Result<()> {
        fs::create_dir_all(&self.path).map_err(self.failed("make"))
    }

    /// Moves the calling process into the control group; it stays there after exec(2). Sockets that it has already do
    /// not change.
    ///
    /// # Errors
    /// [`Error::NoGroup`] if no daemon has made the control group; [`Error::Group`] if it cannot be entered.
    pub fn enter(&self) -> Result<()> {
        let procs = self.path.join("cgroup.procs");
        match fs::write(procs, "0") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Error::NoGroup(self.path.clone()))
            }
            other => other.map_err(self.failed("enter")),
        }
    }

    /// Whether no process is in the control group.
    ///
    /// # Errors
    /// [`Error::Group`] if the control group cannot be read.
    pub fn is_empty(&self) -> Result<bool> {
        let processes = fs::read_to_string(self.path.join("cgroup.procs"));
        Ok(processes.map_err(self.failed("look into"))?.is_empty())
    }

    /// Removes the control group, or does nothing if it is gone. Its processes move to the root control group and are
    /// not told: the sockets that they open from then on are this node's own.
    ///
    /// # Errors
    /// [`Error::Group`] if the control group cannot be removed.
    pub fn remove(&self) -> Result<()> {
        let mut last = Ok(());
        for _ in 0..1000 {
            let processes = fs::read_to_string(self.path.join("cgroup.procs"));
            for pid in processes.unwrap_or_default().lines() {
                // The process may have ended since. If it has not, the removal below reports that the group is busy.
                let _ = fs::write(self.root.join("cgroup.procs"), pid);
            }
            last = match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                other => other,
            };
            if last.is_ok() {
                break;
            }
            // A process that is ending belongs to the group until it has ended.
            thread::sleep(Duration::from_millis(10));
        }
        last.map_err(self.failed("remove"))
    }

    fn failed(&self, doing: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = self.path.clone();
        move |cause| Error::Group { doing, path, cause }
    }
}
