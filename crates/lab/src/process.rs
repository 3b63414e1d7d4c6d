//! Processes that outlive the command that starts them, and are never confused with others.
//!
//! A pid can be reused, so a process is known by pid *and* start time, and what it started in turn
//! (nginx's workers, say) by its session, namespace and age.

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

/// What is started on a host, enough to start it again.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Start {
    /// Host and thing, as the lab file calls them.
    pub host: String,
    pub thing: String,
    /// Program (a full path) and arguments, to run inside the host.
    pub words: Vec<String>,
    /// Files a former run may have left, which would keep it from starting or make it look ready.
    pub leftovers: Vec<PathBuf>,
    /// Standard output and error are appended here.
    pub log: PathBuf,
    /// Working directory.
    pub directory: PathBuf,
}

/// A process that was started: the leader of its own session.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Process {
    #[serde(flatten)]
    pub start: Start,
    pub pid: u32,
    /// Clock ticks after boot: field 22 of /proc/PID/stat, proc(5).
    pub started: u64,
    /// Inode of the network namespace it runs in.
    pub namespace: u64,
}

impl Start {
    /// Starts it, in a session of its own. `enter` is the command that enters the host and then runs
    /// the words that are added to it.
    pub fn detached(self, enter: Command, namespace: u64) -> Result<Process> {
        let doing = || format!("start {} on {}", self.thing, self.host);
        let log = open_log(&self.log)?;
        let mut command = Command::new(crate::tool::find("setsid")?);
        // A new child leads no process group, so setsid has no need to fork, nor has nsenter: each
        // becomes what it runs, and the pid is the program's own.
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
            // Not waited for, so it stays visible as a zombie at least; this is a /proc unlike proc(5).
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
                // If it is a child of this very process, let the kernel forget it.
                let _ = waitpid(self.as_pid(), Some(WaitPidFlag::WNOHANG));
                false
            }
            Some(stat) => stat.started == self.started,
            None => false,
        }
    }

    /// For a child of this very process: whether, `within` this time, it has not ended with failure.
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

    /// Sends a signal. One that no process can catch (KILL, STOP), and CONT, reach everything the
    /// process started as well; all others only the process itself. No process: no error.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let all = matches!(signal, Signal::SIGKILL | Signal::SIGSTOP | Signal::SIGCONT);
        let mut targets = if all { self.session() } else { Vec::new() };
        if self.is_alive() && !targets.contains(&self.pid) {
            targets.push(self.pid); // It may not have come as far as its own session.
        }
        for pid in targets {
            match kill(raw(pid), signal) {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(errno) => return Err(errno).doing(|| format!("send {signal} to {pid}")),
            }
        }
        Ok(())
    }

    /// The living processes of its session: itself and what it started.
    pub fn session(&self) -> Vec<u32> {
        if Stat::of(self.pid).is_some_and(|leader| leader.started != self.started) {
            return Vec::new(); // The pid has a new owner, so nothing of the old session lives.
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

/// Ends processes and all they started: asks each process with SIGTERM, waits up to `patience` for
/// all of them, then kills what is left.
pub(crate) fn end(processes: &[Process], patience: Duration) -> Vec<crate::Error> {
    // What stands still would not hear the one without the other.
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

/// Polls until `done` or until time is up; tells which.
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

/// Every process of the machine, by number.
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

/// What is needed of /proc/PID/stat, proc(5).
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

    /// The second field, the program's name in parentheses, may itself hold spaces and parentheses.
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
