//! The record of what a lab has made. It is on disk, so that any later command can find the lab and take it down.

use std::fs::OpenOptions;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::error::{Doing, Error, Result};
use crate::file::LabName;
use crate::netns::Namespace;
use crate::process::Process;

const ROOT: &str = "/run/baton-lab";
const FILE: &str = "lab.json";

/// A lab's state. It is saved after every step of `up`, so that an interrupted `up` can be undone.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    pub lab: LabName,
    /// The text of the lab file.
    pub source: String,
    /// The boot ID of the machine when the lab was made. Pids and inodes mean nothing after a reboot.
    pub boot: String,
    /// Whether `up` has finished.
    pub complete: bool,
    /// The namespaces: the bridge's first, then those of the hosts in the order of the file.
    pub namespaces: Vec<Namespace>,
    pub processes: Vec<Process>,
    /// The control groups of hosts with a CPU quota.
    pub cgroups: Vec<PathBuf>,
    /// The directories in which nodes pin their programs and maps.
    pub pins: Vec<PathBuf>,
    /// Whether each packet crosses the links alone, because a link has lost packets: each loss must be of one packet,
    /// not of 64 KiB at once.
    pub single_packets: bool,
}

impl State {
    pub fn new(lab: &LabName, source: &str) -> Result<State> {
        Ok(State {
            lab: lab.clone(),
            source: source.to_owned(),
            boot: boot()?,
            complete: false,
            namespaces: Vec::new(),
            processes: Vec::new(),
            cgroups: Vec::new(),
            pins: Vec::new(),
            single_packets: false,
        })
    }

    /// Reads the state of a lab; `None` if it is not up.
    pub fn load(lab: &LabName) -> Result<Option<State>> {
        let path = directory(lab).join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).doing(|| format!("read {}", path.display())),
        };
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| Error::State {
                path,
                why: error.to_string(),
            })
    }

    /// Writes the state to another file and renames it into place, so that a reader never sees half of it.
    pub fn save(&self) -> Result<()> {
        let directory = directory(&self.lab);
        let path = directory.join(FILE);
        let aside = directory.join("lab.json.new");
        let doing = || format!("write {}", path.display());
        let text = serde_json::to_string_pretty(self)
            .map_err(std::io::Error::other)
            .doing(doing)?;
        std::fs::write(&aside, text)
            .and_then(|()| std::fs::rename(&aside, &path))
            .doing(doing)
    }

    /// Whether the lab was made since the last boot of the machine. If not, only its files are left.
    pub fn is_of_this_boot(&self) -> bool {
        boot().is_ok_and(|boot| boot == self.boot)
    }

    pub fn namespace(&self, name: &str) -> Option<&Namespace> {
        self.namespaces
            .iter()
            .find(|namespace| namespace.name == name)
    }

    /// The control group of a host, if it has a CPU quota.
    pub fn group(&self, host: &str) -> Option<PathBuf> {
        self.cgroups
            .iter()
            .find(|group| group.ends_with(host))
            .cloned()
    }

    pub fn process(&self, host: &str, thing: &str) -> Option<&Process> {
        self.processes
            .iter()
            .find(|one| one.start.host == host && one.start.thing == thing)
    }
}

/// The directory in which a lab keeps its files.
pub(crate) fn directory(lab: &LabName) -> PathBuf {
    Path::new(ROOT).join(lab.as_str())
}

/// The directory with a host's files: generated configurations, logs, sockets.
pub(crate) fn host_directory(lab: &LabName, host: &str) -> PathBuf {
    directory(lab).join(host)
}

/// The name of a host's namespace.
pub(crate) fn namespace_name(lab: &LabName, host: &str) -> String {
    format!("baton-{lab}-{host}")
}

/// The labs that have a state, by name, in order.
pub(crate) fn labs() -> Vec<LabName> {
    let entries = std::fs::read_dir(ROOT).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().join(FILE).exists())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
        .into_iter()
        .filter_map(|name| LabName::try_from(name).ok())
        .collect()
}

/// A lock on a file. It ensures that only one command at a time changes a lab.
pub(crate) struct Lock {
    path: PathBuf,
    _held: Flock<std::fs::File>,
}

impl Lock {
    /// Takes the lock of a lab. Waits while another command holds it.
    pub fn lab(lab: &LabName, progress: &mut dyn FnMut(&str)) -> Result<Lock> {
        Lock::take(&Path::new(ROOT).join(format!("{lab}.lock")), progress)
    }

    /// Takes the lock on the file at `path`. Waits while another command holds it, and says so by `progress`.
    pub fn take(path: &Path, progress: &mut dyn FnMut(&str)) -> Result<Lock> {
        let doing = || format!("lock {}", path.display());
        loop {
            let parent = path.parent().unwrap_or(Path::new("/"));
            match std::fs::create_dir_all(parent) {
                // Another command removed the directory while it was being made.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                made => made.doing(|| format!("make {}", parent.display()))?,
            }
            let open = OpenOptions::new()
                .create(true)
                .append(true)
                .mode(0o600)
                .open(path);
            let file = match open {
                // Another command removed the directory between the two lines above.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                other => other.doing(doing)?,
            };
            let held = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(held) => held,
                Err((file, Errno::EWOULDBLOCK)) => {
                    progress(&format!(
                        "waiting for another command to release {}",
                        path.display()
                    ));
                    Flock::lock(file, FlockArg::LockExclusive)
                        .map_err(|(_, errno)| errno)
                        .doing(doing)?
                }
                Err((_, errno)) => return Err(errno).doing(doing),
            };
            // The previous holder may have removed the file. Then this lock protects nothing.
            let ours = held.metadata().doing(doing)?.ino();
            if path.metadata().is_ok_and(|there| there.ino() == ours) {
                return Ok(Lock {
                    path: path.to_owned(),
                    _held: held,
                });
            }
        }
    }

    /// Releases the lock and removes its file, and the directory of all labs if it is empty.
    pub fn remove(self) {
        // Errors do not matter: file and directory are made again when they are missing.
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_dir(ROOT);
    }
}

fn boot() -> Result<String> {
    let path = "/proc/sys/kernel/random/boot_id";
    Ok(std::fs::read_to_string(path)
        .doing(|| format!("read {path}"))?
        .trim()
        .to_owned())
}
