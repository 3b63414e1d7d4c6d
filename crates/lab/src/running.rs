//! A lab that is up.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::down::{self, Down};
use crate::error::{Error, Result};
use crate::file::{BRIDGE, Host, Lab, LabName};
use crate::netns::Namespace;
use crate::process::{self, Process};
use crate::ready::PATIENCE;
use crate::state::{self, Lock, State};
use crate::{ready, start};

/// Processes that were killed are gone within this time.
const ENDING: Duration = Duration::from_secs(5);

/// A handle to a lab that is up. Dropping it leaves the lab up. Every call reads the lab's state
/// again, so that handles in several processes agree.
#[derive(Clone, Debug)]
pub struct Running {
    lab: Lab,
}

/// A host of a lab that is up: its addresses, its files and what runs on it.
#[derive(Clone, Debug)]
pub struct HostView {
    /// The host's name; "bridge" for the lab's bridge.
    pub name: String,
    /// The addresses of its first interface. The bridge has none.
    pub addresses: Vec<IpAddr>,
    /// Its roles in the cluster, as in the lab file. A client has none.
    pub roles: Vec<&'static str>,
    /// The path of its network namespace.
    pub namespace: PathBuf,
    /// The directory with its files: `THING.log`, `access.log`, `baton.toml`, `control.sock`.
    pub directory: PathBuf,
    /// The servers and programs that were started on it.
    pub things: Vec<ThingView>,
}

/// A server or program that was started on a host.
#[derive(Clone, Debug)]
pub struct ThingView {
    /// Its name in the lab file.
    pub name: String,
    /// The pid of the process that was started.
    pub pid: u32,
    /// Whether that process runs.
    pub alive: bool,
    /// The path of the log with its standard output and standard error.
    pub log: PathBuf,
}

impl Running {
    /// The names of all labs that are up (or half up), in order.
    pub fn names() -> Vec<String> {
        state::labs()
            .iter()
            .map(|name| name.as_str().to_owned())
            .collect()
    }

    /// A handle to the lab of this name.
    ///
    /// # Errors
    /// [`Error::NotUp`] if there is no such lab, or an error if its state cannot be read.
    pub fn open(name: &str) -> Result<Running> {
        let not_up = || Error::NotUp(name.to_owned());
        let name = LabName::try_from(name.to_owned()).map_err(|_| not_up())?;
        Running::from_state(State::load(&name)?.ok_or_else(not_up)?)
    }

    /// A handle to the only lab that is up.
    ///
    /// # Errors
    /// [`Error::NoLab`] if no lab is up, [`Error::SeveralLabs`] if more than one is.
    pub fn only() -> Result<Running> {
        Running::open(&only_name()?)
    }

    pub(crate) fn from_state(state: State) -> Result<Running> {
        Ok(Running {
            lab: Lab::parse(&state.source)?,
        })
    }

    /// The lab file from which the lab was raised.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// A command that runs a program on a host: add the program and its arguments to it with
    /// [`Command::arg`]. Streams, signals and exit status are the program's own; it shares the
    /// host's network and CPU quota. `host` may be "bridge".
    ///
    /// # Errors
    /// [`Error::NoSuchHost`], [`Error::NotUp`].
    pub fn exec(&self, host: &str) -> Result<Command> {
        let state = self.state()?;
        start::enter(self.namespace(&state, host)?, state.group(host).as_deref())
    }

    /// Runs `work` on a thread of its own inside a host, and waits for it. Sockets that it opens stay
    /// in the host wherever they are used later.
    ///
    /// # Errors
    /// [`Error::NoSuchHost`], [`Error::NotUp`].
    pub fn within<T: Send>(&self, host: &str, work: impl FnOnce() -> T + Send) -> Result<T> {
        self.namespace(&self.state()?, host)?.within(work)
    }

    /// Describes a host. `name` may be "bridge".
    ///
    /// # Errors
    /// [`Error::NoSuchHost`], [`Error::NotUp`].
    pub fn host(&self, name: &str) -> Result<HostView> {
        let state = self.state()?;
        let namespace = self.namespace(&state, name)?;
        let host = self.lab.host(name);
        Ok(HostView {
            name: name.to_owned(),
            addresses: host
                .iter()
                .flat_map(|h| &h.addresses)
                .map(|one| one.ip())
                .collect(),
            roles: host
                .iter()
                .flat_map(|host| &host.roles)
                .map(|role| role.name())
                .collect(),
            namespace: namespace.path(),
            directory: state::host_directory(&self.lab.name, name),
            things: state
                .processes
                .iter()
                .filter(|process| process.start.host == name)
                .map(ThingView::from)
                .collect(),
        })
    }

    /// Describes every host in the order of the file, the bridge last.
    ///
    /// # Errors
    /// [`Error::NotUp`].
    pub fn hosts(&self) -> Result<Vec<HostView>> {
        let hosts = self.lab.hosts.iter().map(|host| host.name.as_str());
        hosts.chain([BRIDGE]).map(|name| self.host(name)).collect()
    }

    /// Sends a signal to a server or program on a host. `SIGKILL`, `SIGSTOP` and `SIGCONT` go to all its
    /// processes, any other signal only to the process that was started (the master of nginx, for example).
    ///
    /// # Errors
    /// [`Error::NoSuchHost`], [`Error::NoSuchThing`], [`Error::NotUp`]. A program that is not running is not an
    /// error here.
    pub fn kill(&self, host: &str, thing: &str, signal: Signal) -> Result<()> {
        self.process(&self.state()?, host, thing)?.signal(signal)
    }

    /// Ends a server or program on a host, if it runs, starts it again as `up` did, and waits until it is
    /// ready.
    ///
    /// # Errors
    /// [`Error::NoSuchHost`], [`Error::NoSuchThing`], [`Error::NotReady`], [`Error::NotUp`].
    pub fn restart(&self, host: &str, thing: &str) -> Result<()> {
        let _lock = Lock::lab(&self.lab.name, &mut |_| {})?;
        let mut state = self.state()?;
        let old = self.process(&state, host, thing)?.clone();
        if let Some(error) = process::end(std::slice::from_ref(&old), down::PATIENCE).pop() {
            return Err(error);
        }
        let namespace = self.namespace(&state, host)?.clone();
        let new = start::start(old.start, &namespace, state.group(host).as_deref())?;
        for process in &mut state.processes {
            if process.start.host == host && process.start.thing == thing {
                *process = new.clone();
            }
        }
        state.save()?;
        match self
            .lab
            .host(host)
            .and_then(|host| Some((host, host.thing(thing)?)))
        {
            Some((host, thing)) => ready::wait(host, thing, &new, &namespace, PATIENCE),
            None => Ok(()), // The state holds only what the file names.
        }
    }

    /// Ends the processes in all hosts that the lab did not start, such as clients that a test has left behind.
    ///
    /// # Errors
    /// [`Error::NotUp`].
    pub fn end_others(&self) -> Result<()> {
        let state = self.state()?;
        let own: Vec<u32> = (state.processes.iter())
            .flat_map(Process::session)
            .collect();
        process::kill_all(ENDING, || {
            let inside = state.namespaces.iter().flat_map(Namespace::processes);
            inside.filter(|pid| !own.contains(pid)).collect()
        });
        Ok(())
    }

    /// Takes the lab down: see [`down::down`].
    ///
    /// # Errors
    /// [`Error::Down`] with everything that could not be undone.
    pub fn down(self) -> Result<Down> {
        down::down(&self.lab.name, |_| {})
    }

    pub(crate) fn state(&self) -> Result<State> {
        State::load(&self.lab.name)?.ok_or_else(|| Error::NotUp(self.lab.name.as_str().to_owned()))
    }

    pub(crate) fn namespace<'a>(&self, state: &'a State, host: &str) -> Result<&'a Namespace> {
        state
            .namespace(&state::namespace_name(&self.lab.name, host))
            .ok_or_else(|| self.no_such_host(host))
    }

    pub(crate) fn namespaces(&self, state: &State) -> Result<Vec<(Namespace, Host)>> {
        let hosts = self.lab.hosts.iter();
        hosts
            .map(|host| {
                Ok((
                    self.namespace(state, host.name.as_str())?.clone(),
                    host.clone(),
                ))
            })
            .collect()
    }

    fn process<'a>(&self, state: &'a State, host: &str, thing: &str) -> Result<&'a Process> {
        self.namespace(state, host)?;
        state
            .process(host, thing)
            .ok_or_else(|| Error::NoSuchThing {
                host: host.to_owned(),
                thing: thing.to_owned(),
                known: state
                    .processes
                    .iter()
                    .filter(|process| process.start.host == host)
                    .map(|process| process.start.thing.clone())
                    .collect(),
            })
    }

    pub(crate) fn no_such_host(&self, host: &str) -> Error {
        Error::NoSuchHost {
            lab: self.lab.name.as_str().to_owned(),
            host: host.to_owned(),
            known: self
                .lab
                .hosts
                .iter()
                .map(|host| host.name.as_str().to_owned())
                .collect(),
        }
    }
}

/// The name of the only lab that is up.
pub(crate) fn only_name() -> Result<String> {
    match Running::names().as_slice() {
        [] => Err(Error::NoLab),
        [name] => Ok(name.clone()),
        several => Err(Error::SeveralLabs(several.to_vec())),
    }
}

impl From<&Process> for ThingView {
    fn from(process: &Process) -> ThingView {
        ThingView {
            name: process.start.thing.clone(),
            pid: process.pid,
            alive: process.is_alive(),
            log: process.start.log.clone(),
        }
    }
}
