//! A service manager that a step started.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// A time limit that is longer than the unit lets anything take.
const LONGEST: Duration = Duration::from_secs(300);

/// A running systemd. When this is dropped, systemd ends with everything that it has started.
pub struct Manager {
    pub(super) child: Child,
    pub(super) group: PathBuf,
}

impl Manager {
    /// A command that enters systemd's namespaces. The caller adds the program to run.
    pub(super) fn command(&mut self) -> Result<Command> {
        if let Some(status) = self.child.try_wait()? {
            anyhow::bail!("systemd has ended with {status}");
        }
        let outside = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{outside}/task/{outside}/children"))?;
        let first = children.split_whitespace().next();
        let first = first.context("systemd has not begun yet")?;
        let mut command = Command::new("timeout");
        command.args(["-k", "5", &LONGEST.as_secs().to_string()]);
        command.args(["nsenter", "-t", first, "-m", "-p", "-C", "-n", "--"]);
        Ok(command)
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // `unshare --kill-child` kills systemd with this process, and with systemd all processes of its namespace end.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let end = Instant::now() + Duration::from_secs(10);
        while remove_group(&self.group).is_err() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Removes a control group with all groups below it.
fn remove_group(group: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(group)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_group(&entry.path())?;
        }
    }
    std::fs::remove_dir(group)
}
