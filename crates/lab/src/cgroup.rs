//! The CPU quota of a host: a control group for everything that runs on it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::error::{Doing, Error, Result};
use crate::file::Cpu;
use crate::process::wait_until;

/// The period in microseconds. It is short, so that a host that has used up its share does not stop for long.
const PERIOD: f64 = 20_000.0;
/// The period in microseconds for shares whose quota would otherwise be below the kernel's minimum, 1 ms a period.
const LONG_PERIOD: f64 = 100_000.0;
const LEAST_QUOTA: f64 = 1_000.0;

/// The version of control groups that governs the CPU on this machine, and where it is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hierarchy {
    V1(PathBuf),
    V2(PathBuf),
}

impl Hierarchy {
    /// Finds the hierarchy among the places where systems mount it.
    pub fn find() -> Result<Hierarchy> {
        Hierarchy::find_below(Path::new("/sys/fs/cgroup"))
    }

    fn find_below(root: &Path) -> Result<Hierarchy> {
        let v1 = root.join("cpu");
        if v1.join("cpu.cfs_quota_us").exists() {
            return Ok(Hierarchy::V1(v1));
        }
        let has_cpu = |place: &Path| {
            std::fs::read_to_string(place.join("cgroup.controllers"))
                .is_ok_and(|controllers| controllers.split_whitespace().any(|one| one == "cpu"))
        };
        [root.to_owned(), root.join("unified")]
            .into_iter()
            .find(|place| has_cpu(place))
            .map(Hierarchy::V2)
            .ok_or_else(|| {
                Error::CannotRun(vec![format!(
                    "no cpu controller in {}: mount one (mount -t cgroup -o cpu cgroup {}) or \
                     remove `cpu` from the lab file",
                    root.display(),
                    v1.display()
                )])
            })
    }

    /// The path of a host's group. It is inside a group for the lab, which is inside a group for all labs.
    pub fn group(&self, lab: &str, host: &str) -> PathBuf {
        let (Hierarchy::V1(root) | Hierarchy::V2(root)) = self;
        root.join("baton-lab").join(lab).join(host)
    }

    /// Makes the group, with its quota.
    pub fn create(&self, group: &Path, cpu: Cpu) -> Result<()> {
        std::fs::create_dir_all(group).doing(|| format!("make {}", group.display()))?;
        let (quota, period) = quota(cpu);
        match self {
            Hierarchy::V1(_) => {
                write(&group.join("cpu.cfs_period_us"), &period.to_string())?;
                write(&group.join("cpu.cfs_quota_us"), &quota.to_string())
            }
            Hierarchy::V2(root) => {
                // A group has a controller only if every group above it passes it on.
                let above: Vec<&Path> = group
                    .ancestors()
                    .skip(1)
                    .take_while(|above| above.starts_with(root))
                    .collect();
                for above in above.into_iter().rev() {
                    write(&above.join("cgroup.subtree_control"), "+cpu")?;
                }
                write(&group.join("cpu.max"), &format!("{quota} {period}"))
            }
        }
    }
}

/// A command that enters a group. The caller adds the words of the command to run there.
pub(crate) fn enter(group: &Path) -> Result<Command> {
    let mut command = Command::new(crate::tool::find("sh")?);
    let procs = group.join("cgroup.procs");
    command
        .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
        .arg(procs);
    Ok(command)
}

/// Removes a group, or does nothing if it is gone. Processes in it move up first.
pub(crate) fn remove(group: &Path) -> Result<()> {
    if !group.exists() {
        return Ok(());
    }
    if let Some(above) = group.parent() {
        for pid in std::fs::read_to_string(group.join("cgroup.procs"))
            .unwrap_or_default()
            .lines()
        {
            // It may have ended since; if not, the removal below says that the group is busy.
            let _ = std::fs::write(above.join("cgroup.procs"), pid);
        }
    }
    let mut last = Ok(());
    wait_until(Duration::from_secs(1), || {
        last = std::fs::remove_dir(group);
        last.is_ok()
    });
    last.doing(|| format!("remove the control group {}", group.display()))
}

/// Quota and period in microseconds.
fn quota(cpu: Cpu) -> (u64, u64) {
    let period = if cpu.share() * PERIOD < LEAST_QUOTA {
        LONG_PERIOD
    } else {
        PERIOD
    };
    ((cpu.share() * period).round() as u64, period as u64)
}

fn write(path: &Path, value: &str) -> Result<()> {
    std::fs::write(path, value).doing(|| format!("write {value} to {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: PathBuf) -> String {
        std::fs::read_to_string(path).unwrap_or_default()
    }

    #[test]
    fn v1_gets_quota_and_period() -> Result<(), Box<dyn std::error::Error>> {
        let root = tempfile::tempdir()?;
        std::fs::create_dir(root.path().join("cpu"))?;
        std::fs::write(root.path().join("cpu/cpu.cfs_quota_us"), "-1")?;
        let hierarchy = Hierarchy::find_below(root.path())?;
        let group = hierarchy.group("split", "ds1");
        assert_eq!(group, root.path().join("cpu/baton-lab/split/ds1"));
        hierarchy.create(&group, Cpu::try_from(0.25)?)?;
        assert_eq!(read(group.join("cpu.cfs_quota_us")), "5000");
        assert_eq!(read(group.join("cpu.cfs_period_us")), "20000");
        Ok(())
    }

    #[test]
    fn v2_passes_the_controller_down() -> Result<(), Box<dyn std::error::Error>> {
        let root = tempfile::tempdir()?;
        std::fs::write(root.path().join("cgroup.controllers"), "io cpu pids")?;
        let hierarchy = Hierarchy::find_below(root.path())?;
        assert_eq!(hierarchy, Hierarchy::V2(root.path().to_owned()));
        let group = hierarchy.group("split", "ds1");
        hierarchy.create(&group, Cpu::try_from(1.5)?)?;
        assert_eq!(read(group.join("cpu.max")), "30000 20000");
        for above in ["", "baton-lab", "baton-lab/split"] {
            assert_eq!(
                read(root.path().join(above).join("cgroup.subtree_control")),
                "+cpu"
            );
        }
        assert!(!group.join("cgroup.subtree_control").exists());
        Ok(())
    }

    #[test]
    fn small_shares_get_a_quota_the_kernel_takes() -> Result<(), String> {
        assert_eq!(quota(Cpu::try_from(0.01)?), (1_000, 100_000));
        assert_eq!(quota(Cpu::try_from(0.05)?), (1_000, 20_000));
        Ok(())
    }

    #[test]
    fn without_a_controller_the_error_says_what_to_do() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        let text = Hierarchy::find_below(root.path()).map(|_| String::new());
        let text = text.unwrap_or_else(|error| error.to_string());
        assert!(text.contains("remove `cpu`"), "{text}");
        Ok(())
    }
}
