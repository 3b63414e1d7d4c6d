//! Measures what a connection server takes of the machine, separately from all that runs beside it.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Seconds of processor time, either up to a moment or between two moments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// The number of runs of the connection server's program.
    pub packets: u64,
    /// The time of these runs.
    pub program: f64,
    /// The time of the thread that polls the connection server's interface. It includes that of the program.
    pub receiving: f64,
    /// The time of the connection server's daemon.
    pub daemon: f64,
    /// The time of the data servers of the turn: of nginx, and of the threads that poll their interfaces.
    pub servers: f64,
    /// The time of the machine's processors, as the mean of all of them.
    pub machine: f64,
}

impl Usage {
    /// The time of the connection server: polling thread and daemon.
    pub fn connection_server(&self) -> f64 {
        self.receiving + self.daemon
    }

    /// The usage between an earlier moment and this one.
    pub fn since(self, earlier: Usage) -> Usage {
        Usage {
            packets: self.packets - earlier.packets,
            program: self.program - earlier.program,
            receiving: self.receiving - earlier.receiving,
            daemon: self.daemon - earlier.daemon,
            servers: self.servers - earlier.servers,
            machine: self.machine - earlier.machine,
        }
    }
}

/// The seconds that all present threads of a process have worked, to the nanosecond
/// (Documentation/scheduler/sched-stats.rst).
pub(super) fn seconds(process: u32) -> Result<f64> {
    let tasks = format!("/proc/{process}/task");
    let entries = fs::read_dir(&tasks).with_context(|| format!("read {tasks}"))?;
    let nanos = entries.map(|entry| {
        let path = entry?.path().join("schedstat");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            // The thread has ended meanwhile.
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(nix::libc::ENOENT | nix::libc::ESRCH)
                ) =>
            {
                return Ok(0);
            }
            Err(error) => return Err(error).with_context(|| format!("read {}", path.display())),
        };
        let first = text
            .split(' ')
            .next()
            .and_then(|nanos| nanos.parse::<u64>().ok());
        first.with_context(|| format!("{} is not as the kernel documents it", path.display()))
    });
    Ok(nanos.sum::<Result<u64>>()? as f64 / 1e9)
}

/// The seconds that a process and its children have worked.
pub(super) fn seconds_of_all(process: u32) -> Result<f64> {
    let path = format!("/proc/{process}/task/{process}/children");
    let children = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let children = children
        .split_ascii_whitespace()
        .map(|child| seconds_of_all(child.parse()?));
    Ok(seconds(process)? + children.sum::<Result<f64>>()?)
}

/// Makes a thread use the quota of a process.
pub(super) fn join(thread: u32, process: u32) -> Result<()> {
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup"))?;
    // A line of the file is "hierarchy:controllers:path", and for version 2 "0::path" (cgroups(7)).
    let mut groups = groups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let place = match controllers {
            "" => "",
            "cpu" | "cpu,cpuacct" => "/cpu",
            _ => return None,
        };
        Some(format!("/sys/fs/cgroup{place}{path}/cgroup.procs"))
    });
    let group = groups.find(|group| group.contains("baton-lab") && Path::new(group).exists());
    let group = group.with_context(|| format!("process {process} has no quota of its own"))?;
    fs::write(&group, thread.to_string()).with_context(|| format!("move {thread} to {group}"))
}

/// The kernel's threads that poll an interface of this name, in whatever namespace.
pub(super) fn polling_threads(interface: &str) -> Result<Vec<u32>> {
    let name = format!("napi/{interface}-");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("read /proc")? {
        let Some(process) = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // A process that has ended meanwhile is left out.
        let comm = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        if comm.starts_with(&name) {
            found.push(process);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_process_that_works_has_worked_longer() {
        let mut busy = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .expect("a shell");
        let worked = || seconds(busy.id()).expect("schedstat");
        let before = worked();
        let deadline = Instant::now() + Duration::from_secs(60);
        while worked() <= before && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let after = worked();
        busy.kill().expect("it runs until now");
        busy.wait().expect("it has ended");
        assert!(after > before, "{before} s, then {after} s");
    }
}
