//! Takes the power of a host away, and gives it back.

use std::path::Path;
use std::time::Duration;

use crate::error::{Doing, Error, Result};
use crate::file::{BRIDGE, Host};
use crate::netns::Namespace;
use crate::process::{Process, kill_all};
use crate::running::Running;
use crate::state::{self, Lock, State};
use crate::{config, down, ready, start, topology};

/// The files that a node keeps in /run. No machine has them after it starts.
const GONE_WITH_POWER: [&str; 4] = ["control.sock", "undo.json", "lock", "draining"];
/// The time that the kernel may need to end processes on a busy machine.
const ENDING: Duration = Duration::from_secs(15);

impl Running {
    pub(super) fn halt(&self, host: &str) -> Result<()> {
        let _lock = Lock::lab(self.lab().name(), &mut |_| {})?;
        let mut state = self.state()?;
        self.power_off(&mut state, self.file_host(host)?)
    }

    pub(super) fn reboot(&self, host: &str, patience: Duration) -> Result<()> {
        let _lock = Lock::lab(self.lab().name(), &mut |_| {})?;
        let mut state = self.state()?;
        let host = self.file_host(host)?;
        self.power_off(&mut state, host)?;
        self.power_on(&mut state, host, patience)
    }

    /// Cuts the link first, because a machine without power sends nothing. Then removes everything that is
    /// only in the host's memory: processes, pinned programs and maps, and, with the namespace, sockets. The
    /// kernel would otherwise keep sockets until their last data is acknowledged.
    fn power_off(&self, state: &mut State, host: &Host) -> Result<()> {
        let (lab, name) = (self.lab(), host.name.as_str());
        if !host.ports.is_empty() {
            return Err(Error::HasPorts(name.to_owned()));
        }
        let bridge = self.namespace(state, BRIDGE)?.clone();
        let old = self.namespace(state, name)?.clone();
        topology::carrier(&bridge, host, false)?;
        end_all(&old)?;
        down::remove_pins(&config::pins(lab, host))?;
        let directory = state::host_directory(&lab.name, name);
        for file in GONE_WITH_POWER {
            remove_file(&directory.join(file))?;
        }

        topology::park(&bridge, &old)?;
        old.remove()?;
        let new = Namespace::create(&old.name)?;
        for namespace in &mut state.namespaces {
            if namespace.name == new.name {
                *namespace = new.clone();
            }
        }
        state.save()?;
        topology::prepare(&new, host)?;
        topology::take_back(&bridge, &new)
    }

    fn power_on(&self, state: &mut State, host: &Host, patience: Duration) -> Result<()> {
        let name = host.name.as_str();
        let bridge = self.namespace(state, BRIDGE)?.clone();
        let namespace = self.namespace(state, name)?.clone();
        topology::dress(&namespace, host)?;
        if state.single_packets {
            topology::single_packets(&bridge, &[(namespace.clone(), host.clone())])?;
        }
        topology::carrier(&bridge, host, true)?;

        let group = state.group(name);
        // The order is that of `up`: servers before the node, except where the node gives them their sockets.
        let mut ours: Vec<_> = (state.processes.iter_mut())
            .filter(|process| process.start.host == name)
            .collect();
        ours.sort_by_key(|process| (process.start.thing == "node") != host.is_app());
        // The state holds only what the file names.
        let is_ready = |process: &Process| match host.thing(&process.start.thing) {
            Some(thing) => ready::wait(host, thing, process, &namespace, patience),
            None => Ok(()),
        };
        let mut started = Vec::new();
        for process in ours {
            *process = start::start(process.start.clone(), &namespace, group.as_deref())?;
            started.push(process.clone());
            if host.is_app() {
                is_ready(process)?;
            }
        }
        state.save()?;
        started.iter().try_for_each(is_ready)
    }

    /// The host of this name in the lab file. The bridge is not among them.
    pub(super) fn file_host(&self, name: &str) -> Result<&Host> {
        let host = self.lab().host(name);
        host.ok_or_else(|| self.no_such_host(name))
    }
}

/// Ends every process inside the namespace, whoever started it.
fn end_all(namespace: &Namespace) -> Result<()> {
    let gone = kill_all(ENDING, || namespace.processes());
    if gone {
        return Ok(());
    }
    let why = std::io::Error::other(format!("{:?} are still there", namespace.processes()));
    Err(why).doing(|| format!("end what runs in {}", namespace.name))
}

fn remove_file(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).doing(|| format!("remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
