//! Raises a lab. If a part fails, everything that was made is taken down.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cgroup::Hierarchy;
use crate::config::{self, ClusterKey};
use crate::error::{Doing, Error, Result};
use crate::fault::packets;
use crate::file::{BRIDGE, Host, Lab, Loss, Thing};
use crate::netns::{self, Namespace};
use crate::ready::PATIENCE;
use crate::running::Running;
use crate::state::{self, Lock, State};
use crate::{down, ready, servers, start, tool, topology};

/// How to raise a lab.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `baton` program, which nodes run.
    pub baton: PathBuf,
    /// How long each thing may take to become ready.
    pub patience: Duration,
}

impl Options {
    /// Options with which nodes run this program, and each thing gets [`PATIENCE`].
    pub fn new(baton: impl Into<PathBuf>) -> Options {
        Options {
            baton: baton.into(),
            patience: PATIENCE,
        }
    }
}

impl Lab {
    /// Raises the lab and waits until everything in it is ready. If it is up already, nothing is done. First
    /// it clears what an interrupted `up` or a stop of the machine left behind.
    ///
    /// # Errors
    /// An error if anything cannot be made or does not become ready. What had been made is then taken down.
    pub fn up(&self, options: &Options, mut progress: impl FnMut(&str)) -> Result<Running> {
        let progress: &mut dyn FnMut(&str) = &mut progress;
        self.can_run()?;
        let lock = Lock::lab(&self.name, progress)?;
        if let Some(state) = State::load(&self.name)? {
            if state.complete
                && state.is_of_this_boot()
                && state.namespaces.iter().all(Namespace::exists)
            {
                let differs = if state.source == self.source {
                    ""
                } else {
                    ", from another version of its file: take it down to change it"
                };
                progress(&format!("{} is up already{differs}", self.name));
                return Running::from_state(state);
            }
            progress(&format!(
                "clearing what is left of an earlier {}",
                self.name
            ));
            down::take_down(&state)?;
        }
        let raised = self.raise(options, progress);
        if raised.is_err() && State::load(&self.name).is_ok_and(|state| state.is_none()) {
            lock.remove();
        }
        raised
    }

    fn raise(&self, options: &Options, progress: &mut dyn FnMut(&str)) -> Result<Running> {
        self.refuse_foreign_namespaces()?;
        let baton = self.baton(options)?;
        servers::provide(self, progress)?;

        let directory = state::directory(&self.name);
        std::fs::create_dir_all(&directory).doing(|| format!("make {}", directory.display()))?;
        let mut state = State::new(&self.name, &self.source)?;
        let mut raising = Raising {
            lab: self,
            state: &mut state,
            options,
            baton,
            progress,
        };
        match raising.everything() {
            Ok(()) => Running::from_state(state),
            Err(first) => {
                progress("that failed: taking down what was made");
                Err(match down::take_down(&state) {
                    Ok(_) => first,
                    Err(then) => Error::AndThen {
                        first: Box::new(first),
                        then: vec![then],
                    },
                })
            }
        }
    }

    fn refuse_foreign_namespaces(&self) -> Result<()> {
        let hosts = self.hosts.iter().map(|host| host.name.as_str());
        for host in hosts.chain([BRIDGE]) {
            let name = state::namespace_name(&self.name, host);
            if netns::path(&name).exists() {
                return Err(Error::Foreign(name));
            }
        }
        Ok(())
    }

    /// The full path of the program that nodes run. A relative path would fail, because nodes start in their own
    /// directories.
    fn baton(&self, options: &Options) -> Result<PathBuf> {
        if !self
            .hosts
            .iter()
            .any(|host| host.run.contains(&Thing::Node))
        {
            return Ok(options.baton.clone());
        }
        let path = options.baton.display();
        options
            .baton
            .canonicalize()
            .doing(|| format!("find the baton program at {path}"))
    }
}

/// A lab on its way up. Each step is saved as soon as it is done.
struct Raising<'a> {
    lab: &'a Lab,
    state: &'a mut State,
    options: &'a Options,
    baton: PathBuf,
    progress: &'a mut dyn FnMut(&str),
}

impl Raising<'_> {
    fn everything(&mut self) -> Result<()> {
        self.state.save()?;
        (self.progress)(&format!(
            "joining {} hosts to a bridge",
            self.lab.hosts.len()
        ));
        let bridge = self.namespace(BRIDGE)?;
        topology::bridge(&bridge, &self.lab.lans())?;
        let mut hosts = Vec::new();
        for host in &self.lab.hosts {
            let namespace = self.namespace(host.name.as_str())?;
            let directory = state::host_directory(&self.lab.name, host.name.as_str());
            topology::host(&bridge, &namespace, host, &directory)?;
            self.group(host)?;
            hosts.push((namespace, host.clone()));
        }
        self.losses(&bridge, &hosts)?;

        let key = ClusterKey::random()?;
        // Servers start first, so that a node finds its own server healthy at once. On an application node they start
        // after its daemon, because sockets there are virtual only once the daemon runs.
        let before = |host: &Host, thing: &Thing| *thing != Thing::Node && !host.is_app();
        self.things(&hosts, &key, before)?;
        if hosts
            .iter()
            .any(|(_, host)| host.run.contains(&Thing::Node))
        {
            self.pins(&hosts)?;
            // The preferred candidate starts first, because the next one would not wait long for it.
            let front = self.lab.preferred();
            let in_front = |host: &Host| Some(host.name.as_str()) == front;
            self.things(&hosts, &key, |host, thing| {
                *thing == Thing::Node && in_front(host)
            })?;
            self.things(&hosts, &key, |host, thing| {
                *thing == Thing::Node && !in_front(host)
            })?;
        }
        let after = |host: &Host, thing: &Thing| *thing != Thing::Node && host.is_app();
        self.things(&hosts, &key, after)?;
        self.state.complete = true;
        self.state.save()
    }

    fn namespace(&mut self, host: &str) -> Result<Namespace> {
        let namespace = Namespace::create(&state::namespace_name(&self.lab.name, host))?;
        self.state.namespaces.push(namespace.clone());
        self.state.save()?;
        let directory = state::host_directory(&self.lab.name, host);
        std::fs::create_dir_all(&directory).doing(|| format!("make {}", directory.display()))?;
        Ok(namespace)
    }

    fn group(&mut self, host: &Host) -> Result<()> {
        let Some(cpu) = host.cpu else {
            return Ok(());
        };
        let hierarchy = Hierarchy::find()?;
        let group = hierarchy.group(self.lab.name.as_str(), host.name.as_str());
        self.state.cgroups.push(group.clone());
        self.state.save()?;
        hierarchy.create(&group, cpu)
    }

    fn losses(&mut self, bridge: &Namespace, hosts: &[(Namespace, Host)]) -> Result<()> {
        let lossy = self.lab.hosts.iter();
        for host in lossy.filter(|host| host.link.loss > Loss::default()) {
            packets::lose(self.lab, bridge, host)?;
            self.state.single_packets = true;
        }
        if self.state.single_packets {
            topology::single_packets(bridge, hosts)?;
        }
        Ok(())
    }

    /// Starts all things that `which` selects, then waits for all of them, so that they become ready in parallel.
    fn things(
        &mut self,
        hosts: &[(Namespace, Host)],
        key: &ClusterKey,
        which: impl Fn(&Host, &Thing) -> bool,
    ) -> Result<()> {
        let mut started = Vec::new();
        for (namespace, host) in hosts {
            for thing in host.run.iter().filter(|thing| which(host, thing)) {
                let prepared = start::prepare(self.lab, host, thing, &self.baton, key)?;
                let group = self.state.group(host.name.as_str());
                let process = start::start(prepared, namespace, group.as_deref())?;
                self.state.processes.push(process.clone());
                self.state.save()?;
                started.push((namespace, host, thing, process));
            }
        }
        for (namespace, host, thing, process) in started {
            (self.progress)(&format!("waiting for {} on {}", thing.name(), host.name));
            ready::wait(host, thing, &process, namespace, self.options.patience)?;
        }
        Ok(())
    }

    fn pins(&mut self, hosts: &[(Namespace, Host)]) -> Result<()> {
        mount_bpf(Path::new("/sys/fs/bpf"))?;
        // Hosts without a node are included: the agent of an aware client keeps its programs there.
        for (_, host) in hosts {
            self.state.pins.push(config::pins(self.lab, host));
        }
        self.state.save()?;
        let directory = config::lab_pins(self.lab);
        std::fs::create_dir_all(&directory).doing(|| format!("make {}", directory.display()))
    }
}

/// Mounts a BPF file system at `at`, unless there is one.
fn mount_bpf(at: &Path) -> Result<()> {
    let kind = nix::sys::statfs::statfs(at).doing(|| format!("look at {}", at.display()))?;
    if kind.filesystem_type() == nix::sys::statfs::BPF_FS_MAGIC {
        return Ok(());
    }
    tool::run(&format!("mount -t bpf bpf {}", at.display())).map(drop)
}
