//! Takes a lab down. It removes only what the lab made, goes on past errors, and can be repeated.

use std::path::Path;
use std::time::Duration;

use crate::cgroup;
use crate::error::{Doing, Error, Result};
use crate::file::LabName;
use crate::netns::Namespace;
use crate::process::{self, Process};
use crate::state::{self, Lock, State};

/// The time between SIGTERM and SIGKILL for a process. A node takes its programs away in this time, which is
/// slow on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A process that was killed is gone within this time.
const GONE: Duration = Duration::from_secs(5);

/// The result of taking a lab down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Down {
    /// Whether there was anything to take down.
    pub was_up: bool,
    /// Irregularities that are no errors: a node that did not take its programs away (they are removed), or
    /// processes in a host that the lab did not start and that still run.
    pub warnings: Vec<String>,
}

/// Takes down the lab of this name, even if its file can no longer be read. A lab that is not up is no
/// error.
///
/// # Errors
/// [`Error::Down`] with everything that could not be undone. The lab's state is then kept, so that one can try again.
pub fn down(lab: &LabName, mut progress: impl FnMut(&str)) -> Result<Down> {
    let lock = Lock::lab(lab, &mut progress)?;
    let Some(state) = State::load(lab)? else {
        lock.remove();
        return Ok(Down::default());
    };
    progress(&format!("taking down {lab}"));
    let warnings = take_down(&state)?;
    lock.remove();
    Ok(Down {
        was_up: true,
        warnings,
    })
}

/// Undoes everything in the state. Returns the warnings.
pub(crate) fn take_down(state: &State) -> Result<Vec<String>> {
    let mut errors = Vec::new();
    let mut warnings = Vec::new();
    if state.is_of_this_boot() {
        // Nodes end first: a node whose server ends before the node itself would report a failure to the others.
        let (nodes, others): (Vec<Process>, Vec<Process>) = state
            .processes
            .iter()
            .cloned()
            .partition(|one| one.start.thing == "node");
        errors.extend(process::end(&nodes, PATIENCE));
        errors.extend(process::end(&others, PATIENCE));
        let living = state.namespaces.iter().filter(|one| one.exists());
        living.for_each(end_tls_agents);
        for pins in &state.pins {
            match remove_pins(pins) {
                Ok(0) => {}
                Ok(count) => warnings.push(format!(
                    "{} still held {count} pinned programs or maps, which are removed: \
                     the node did not take them away when it ended",
                    pins.display()
                )),
                Err(error) => errors.push(error),
            }
        }
        for namespace in state.namespaces.iter().rev() {
            let stayed = if namespace.exists() {
                namespace.processes()
            } else {
                Vec::new()
            };
            if !stayed.is_empty() {
                warnings.push(format!(
                    "processes that the lab did not start still run in {}, which exists without \
                     a name until they end: {stayed:?}",
                    namespace.name
                ));
            }
            errors.extend(namespace.remove().err());
        }
    }
    for group in &state.cgroups {
        errors.extend(cgroup::remove(group).err());
        remove_empty_parents(group);
    }
    for pins in &state.pins {
        remove_empty_parents(pins);
    }
    if !errors.is_empty() {
        return Err(Error::Down {
            lab: state.lab.as_str().to_owned(),
            errors,
        });
    }
    let directory = state::directory(&state.lab);
    std::fs::remove_dir_all(&directory).doing(|| format!("remove {}", directory.display()))?;
    Ok(warnings)
}

/// Ends the TLS agents in a host. The daemon that has started one ends it, unless the daemon was killed.
fn end_tls_agents(namespace: &Namespace) {
    let is_agent = |pid: &u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|&byte| byte == 0).nth(1) == Some(b"tls-agent")
    };
    let agents = || namespace.processes().into_iter().filter(is_agent).collect();
    process::kill_all(GONE, agents);
}

/// Removes a directory of pins with everything below it, and returns the number of pins.
pub(crate) fn remove_pins(directory: &Path) -> Result<usize> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error).doing(|| format!("read {}", directory.display())),
    };
    let mut count = 0;
    for entry in entries {
        let entry = entry.doing(|| format!("read {}", directory.display()))?;
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            count += remove_pins(&path)?;
        } else {
            std::fs::remove_file(&path).doing(|| format!("remove {}", path.display()))?;
            count += 1;
        }
    }
    std::fs::remove_dir(directory).doing(|| format!("remove {}", directory.display()))?;
    Ok(count)
}

/// Removes the directory of the lab and that of all labs, if nothing is left in them.
fn remove_empty_parents(path: &Path) {
    for parent in path.ancestors().skip(1).take(2) {
        // An error means that another host or lab uses the directory, or that it is gone; both are right.
        let _ = std::fs::remove_dir(parent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_counted_and_removed() -> Result<(), Box<dyn std::error::Error>> {
        let root = tempfile::tempdir()?;
        let pins = root.path().join("ds1");
        std::fs::create_dir_all(pins.join("maps"))?;
        std::fs::write(pins.join("program"), "")?;
        std::fs::write(pins.join("maps/tcb"), "")?;
        assert_eq!(remove_pins(&pins)?, 2);
        assert!(!pins.exists());
        assert_eq!(remove_pins(&pins)?, 0, "gone already");
        Ok(())
    }
}
