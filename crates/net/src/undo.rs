//! The journal of what was changed on this host, so that it can be undone: by this daemon, or by the next one if this
//! one was killed.
//!
//! Invariant: a step is on disk before the change is made (see [`crate::Host`]). A step whose change was never made is
//! harmless, because it succeeds if there is nothing to undo.

mod file;

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::netlink::route::{LocalRoute, MarkRule};
use crate::{Error, Netlink, Result, Sysctl};

/// One step that brings the host back towards its earlier state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// Remove an address that was added as a /32 or /128.
    RemoveAddress {
        /// Name of the interface.
        interface: String,
        /// The address.
        address: IpAddr,
    },
    /// Set a kernel setting to its earlier value.
    Sysctl {
        /// The setting.
        path: Sysctl,
        /// Its value before the first change.
        previous: String,
    },
    /// Remove a policy rule that was added.
    RemoveRule(MarkRule),
    /// Remove a local route that was added.
    RemoveRoute(LocalRoute),
    /// Remove a file that was made, or a pin on a BPF file system.
    RemoveFile {
        /// Absolute path.
        path: PathBuf,
    },
    /// Remove a directory that was made, if it is empty.
    RemoveDir {
        /// Absolute path.
        path: PathBuf,
    },
}

impl Step {
    /// Whether both steps undo a change to the same thing, whatever the value.
    fn same_target(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Sysctl { path: a, .. }, Self::Sysctl { path: b, .. }) => a == b,
            _ => self == other,
        }
    }

    /// Undoes the change. If there is nothing left to undo, that counts as success.
    async fn apply(&self, netlink: &Netlink) -> Result<()> {
        match self {
            Self::RemoveAddress { interface, address } => {
                match netlink.remove_address(interface, *address).await {
                    Ok(_) | Err(Error::NoLink { .. }) => Ok(()),
                    Err(error) => Err(error),
                }
            }
            Self::Sysctl { path, previous } => match path.write(previous) {
                Ok(_) => Ok(()),
                Err(error) if Sysctl::is_gone(&error) => Ok(()),
                Err(error) => Err(error),
            },
            Self::RemoveRule(rule) => netlink.remove_rule(rule).await.map(|_| ()),
            Self::RemoveRoute(route) => netlink.remove_local_route(route).await.map(|_| ()),
            Self::RemoveFile { path } => removed(path, fs::remove_file(path)),
            Self::RemoveDir { path } => removed(path, fs::remove_dir(path)),
        }
    }
}

fn removed(path: &Path, result: io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(Error::system(format!("remove {}", path.display()))),
    }
}

/// The steps that undo all changes, oldest first, and the file that holds them.
#[derive(Debug)]
pub struct Undo {
    path: PathBuf,
    steps: Vec<Step>,
}

impl Undo {
    /// Loads the journal at `path`. If there is none, the journal is empty. A journal from an earlier boot counts as
    /// empty too, because the reboot has undone the changes.
    ///
    /// # Errors
    /// [`Error::Journal`] if the file is not a journal; [`Error::System`] if it cannot be read.
    pub fn load(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let steps = file::load(&path)?;
        Ok(Self { path, steps })
    }

    /// The steps that are to be undone, oldest first.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Adds a step, which is on disk when this returns. Each target is recorded only once, because its oldest value is
    /// the one to go back to.
    ///
    /// # Errors
    /// [`Error::System`] if the step could not be written; it is not recorded then.
    pub fn record(&mut self, step: Step) -> Result<()> {
        if self.steps.iter().any(|known| known.same_target(&step)) {
            return Ok(());
        }
        self.steps.push(step);
        let saved = file::save(&self.path, &self.steps);
        if saved.is_err() {
            self.steps.pop();
        }
        saved
    }

    /// Removes a step whose change was not made after all.
    ///
    /// # Errors
    /// [`Error::System`] if the journal could not be written.
    pub fn forget(&mut self, step: &Step) -> Result<()> {
        let before = self.steps.len();
        self.steps.retain(|known| known != step);
        if self.steps.len() == before {
            return Ok(());
        }
        file::save(&self.path, &self.steps)
    }

    /// Undoes everything, the last change first. It continues after errors and returns them all. Failed steps stay in
    /// the journal for another try; if none is left, the file is removed.
    pub async fn unwind(&mut self, netlink: &Netlink) -> Vec<Error> {
        let mut errors = Vec::new();
        let mut left = Vec::new();
        while let Some(step) = self.steps.pop() {
            if let Err(error) = step.apply(netlink).await {
                errors.push(error);
                left.push(step);
            }
            // The journal is written after each step: if this is killed, the file has at worst one step too many, which
            // is harmless.
            let remaining: Vec<&Step> = self.steps.iter().chain(left.iter().rev()).collect();
            if let Err(error) = file::save(&self.path, &remaining) {
                errors.push(error);
            }
        }
        left.reverse();
        self.steps = left;
        errors
    }
}
