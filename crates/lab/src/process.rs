//! Processes that outlive the command that starts them, and are never confused with others.
//!
//! A pid can be reused, so a process is identified by pid *and* start time. Processes that it started
//! itself (the workers of nginx, for example) are identified by session, namespace and start time.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::error::{Doing, Result};

/// A command to start on a host, with all that is needed to start it again.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Start {
    /// The name of the host in the lab file. `thing` is the name there of what is started.
    pub host: String,
    pub thing: String,
    /// The program (a full path) and its arguments, to run inside the host.
    pub words: Vec<String>,
    /// Files that a former run may have left. They would keep the program from starting or make it look ready.
    pub leftovers: Vec<PathBuf>,
    /// Standard output and error are appended here.
    pub log: PathBuf,
    /// The working directory.
    pub directory: PathBuf,
}

/// A process that was started: the leader of its own session.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Process {
    #[serde(flatten)]
    pub start: Start,
    pub pid: u32,
    /// The start time in clock ticks after boot: field 22 of /proc/PID/stat, proc(5).
    pub started: u64,
    /// The inode of the network namespace that it runs in.
    pub namespace: u64,
}

impl Start {
    /// Starts the command in a session of its own. `enter` is a command that enters the host and then runs
    /// the words that are added to it.
    pub fn detached(self, enter: Command, namespace: u64) -> Result<Process> {
        let doing = || format!("start {} on {}", self.thing, self.host);
        let log = open_log(&self.log)?;
        let mut command = Command::new(crate::tool::find("setsid")?);
        // A new child leads no process group, so setsid need not fork, and nsenter need not either. Each of
        // them becomes what it runs, and the pid is the program's own.
        command
            .arg(enter.get_program())
            .args(enter.get_args())
            .args(&self.words);
        command
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone().doing(doing)?)
            .stderr(log);
        let child = command.spawn().doing(doing)?;
        let pid = child.id();
        let started = match Stat::of(pid) {
            Some(stat) => stat.started,
            // Nobody has waited for the child, so it is visible at least as a zombie, unless /proc is unlike proc(5).
            None => return Err(std::io::Error::other("/proc shows no such process")).doing(doing),
        };
        Ok(Process {
            start: self,
            pid,
            started,
            namespace,
        })
    }
}

impl Process {
    /// Whether the process that was started still runs.
    pub fn is_alive(&self) -> bool {
        match Stat::of(self.pid) {
            Some(stat) if stat.started == self.started && stat.is_zombie() => {
                // If it is a child of this process, this reaps it.
                let _ = waitpid(self.as_pid(), Some(WaitPidFlag::WNOHANG));
                false
            }
            Some(stat) => stat.started == self.started,
            None => false,
        }
    }

    /// Waits up to `within` for a child of this process to end. An error says that it has ended with failure;
    /// a child that still runs is none.
    pub fn started_well(&self, within: Duration) -> Result<(), String> {
        let mut status = WaitStatus::StillAlive;
        wait_until(within, || {
            status = waitpid(self.as_pid(), Some(WaitPidFlag::WNOHANG))
                .unwrap_or(WaitStatus::StillAlive);
            status != WaitStatus::StillAlive
        });
        match status {
            WaitStatus::Exited(_, 0) | WaitStatus::StillAlive => Ok(()),
            WaitStatus::Exited(_, code) => Err(format!("it ended with status {code}")),
            other => Err(format!("it ended: {other:?}")),
        }
    }

    /// Sends a signal. KILL and STOP, which no process can catch, and CONT go to everything that the process
    /// started as well; all other signals go only to the process itself. A process that is gone is no error.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let all = matches!(signal, Signal::SIGKILL | Signal::SIGSTOP | Signal::SIGCONT);
        let mut targets = if all { self.session() } else { Vec::new() };
        if self.is_alive() && !targets.contains(&self.pid) {
            targets.push(self.pid); // It may not have made its own session yet.
        }
        for pid in targets {
            match kill(raw(pid), signal) {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(errno) => return Err(errno).doing(|| format!("send {signal} to {pid}")),
            }
        }
        Ok(())
    }

    /// The pids of the living processes of its session: itself and the processes that it started.
    pub fn session(&self) -> Vec<u32> {
        if Stat::of(self.pid).is_some_and(|leader| leader.started != self.started) {
            return Vec::new(); // Another process has the pid, so nothing of the old session lives.
        }
        all_pids()
            .filter(|pid| {
                Stat::of(*pid).is_some_and(|stat| {
                    stat.session == self.pid && stat.started >= self.started && !stat.is_zombie()
                }) && self.shares_namespace(*pid)
            })
            .collect()
    }

    fn shares_namespace(&self, pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}/ns/net"))
            .metadata()
            .is_ok_and(|meta| meta.ino() == self.namespace)
    }

    fn as_pid(&self) -> Pid {
        raw(self.pid)
    }
}

/// Ends processes and everything that they started. Sends each process SIGTERM, waits up to `patience`
/// for all of them, then sends SIGKILL to those that are left. Returns all errors.
pub(crate) fn end(processes: &[Process], patience: Duration) -> Vec<crate::Error> {
    // A stopped process handles SIGTERM only after SIGCONT.
    let ask = [Signal::SIGTERM, Signal::SIGCONT];
    let mut errors: Vec<crate::Error> = processes
        .iter()
        .flat_map(|process| ask.map(|signal| process.signal(signal)))
        .filter_map(Result::err)
        .collect();
    if !wait_until(patience, || processes.iter().all(is_gone)) {
        errors.extend(
            processes
                .iter()
                .filter_map(|process| process.signal(Signal::SIGKILL).err()),
        );
        wait_until(Duration::from_secs(5), || processes.iter().all(is_gone));
    }
    for process in processes.iter().filter(|process| !is_gone(process)) {
        let why = std::io::Error::other("it is still there after SIGKILL");
        let what = || format!("end {} (pid {})", process.start.thing, process.pid);
        errors.extend(Err::<(), _>(why).doing(what).err());
    }
    errors
}

/// Kills processes until there are none of them any more, at most for so long. Returns whether that is so.
pub(crate) fn kill_all(within: Duration, living: impl Fn() -> Vec<u32>) -> bool {
    wait_until(within, || {
        let pids = living();
        for pid in &pids {
            // It may have ended since. If it cannot be killed, it is there the next time.
            let _ = kill(raw(*pid), Signal::SIGKILL);
        }
        pids.is_empty()
    })
}

/// Polls until `done` gives true or `patience` is over. Returns whether `done` gave true.
pub(crate) fn wait_until(patience: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + patience;
    loop {
        if done() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The pids of all processes of the machine.
pub(crate) fn all_pids() -> impl Iterator<Item = u32> {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn is_gone(process: &Process) -> bool {
    !process.is_alive() && process.session().is_empty()
}

fn open_log(path: &Path) -> Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .doing(|| format!("open the log {}", path.display()))
}

fn raw(pid: u32) -> Pid {
    Pid::from_raw(pid.cast_signed())
}

/// The fields of /proc/PID/stat that are needed, proc(5).
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    session: u32,
    started: u64,
}

impl Stat {
    fn of(pid: u32) -> Option<Stat> {
        Stat::parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Parses the text of the file. The second field, the program's name in parentheses, may hold spaces and
    /// parentheses itself.
    fn parse(text: &str) -> Option<Stat> {
        let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let session = fields.nth(2)?.parse().ok()?;
        let started = fields.nth(15)?.parse().ok()?;
        Some(Stat {
            state,
            session,
            started,
        })
    }

    fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_survives_a_name_with_parentheses() {
        let text = "42 (a) b (c) S 1 40 39 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 1\n";
        assert_eq!(
            Stat::parse(text),
            Some(Stat {
                state: 'S',
                session: 39,
                started: 987_654
            })
        );
        assert_eq!(Stat::parse("42 (x"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn a_process_with_another_start_time_is_another_process() {
        let pid = std::process::id();
        let started = Stat::of(pid).map(|stat| stat.started).unwrap_or_default();
        let start = Start {
            host: "h".into(),
            thing: "t".into(),
            words: vec![],
            leftovers: vec![],
            log: PathBuf::new(),
            directory: PathBuf::new(),
        };
        let mut process = Process {
            start,
            pid,
            started,
            namespace: 0,
        };
        assert!(process.is_alive());
        process.started += 1;
        assert!(!process.is_alive());
        assert!(process.session().is_empty());
    }
}
