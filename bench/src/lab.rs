//! The lab in which benchmarks run: bench/lab.toml, unless another is named.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Error, Result, anyhow, bail};
use baton_lab::{Lab, Running};
use baton_tests::run::program;
use nix::fcntl::{Flock, FlockArg};
use serde_json::Value;

use crate::options::Options;

const LAB: &str = include_str!("../lab.toml");
const HAPROXY_CONFIG: &str = "bench/haproxy.cfg";

/// A lab that is up. Dropping it takes it down.
pub(crate) struct BenchLab {
    running: Option<Running>,
    baton: PathBuf,
    /// The lock that keeps other benchmarks out. Only the first lab of a run holds it.
    _only_one: Option<Flock<File>>,
}

impl BenchLab {
    /// Raises the lab. Before that, it removes a lab that an interrupted run has left.
    pub fn raise(options: &Options) -> Result<BenchLab> {
        let text = LAB.replace(HAPROXY_CONFIG, &in_bench("haproxy.cfg")?);
        BenchLab::raise_from(&text, options)
    }

    /// Raises the lab of this text, in the same way.
    pub fn raise_from(text: &str, options: &Options) -> Result<BenchLab> {
        let baton = match &options.baton {
            Some(baton) => baton.clone(),
            None => program().map_err(Error::msg)?.to_owned(),
        };
        let only_one = lock(&options.results)?;
        BenchLab::up(text, baton, Some(only_one))
    }

    /// Raises another lab, of another name, while this one is up.
    pub fn raise_beside(&self, text: &str) -> Result<BenchLab> {
        BenchLab::up(text, self.baton.clone(), None)
    }

    fn up(text: &str, baton: PathBuf, only_one: Option<Flock<File>>) -> Result<BenchLab> {
        let lab = Lab::parse(text)?;
        let say = |step: &str| eprintln!("{step}");
        baton_lab::down(lab.name(), say)?;
        let running = lab.up(&baton_lab::Options::new(baton.clone()), say)?;
        Ok(BenchLab {
            running: Some(running),
            baton,
            _only_one: only_one,
        })
    }

    /// The running lab; an error if it is down.
    pub fn running(&self) -> Result<&Running> {
        self.running.as_ref().context("the lab is down")
    }

    /// The JSON that `baton`, with this verb and its arguments, prints on a host whose daemon runs.
    pub fn ask(&self, host: &str, arguments: &[&str]) -> Result<Value> {
        let running = self.running()?;
        let config = running.host(host)?.directory.join("baton.toml");
        let output = running
            .exec(host)?
            .arg(&self.baton)
            .args(arguments)
            .args(["--json", "--config"])
            .arg(config)
            .output()
            .with_context(|| format!("run {} on {host}", self.baton.display()))?;
        if !output.status.success() {
            let (verb, said) = (arguments.first(), String::from_utf8_lossy(&output.stderr));
            bail!("baton {verb:?} on {host}: {}: {said}", output.status);
        }
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("read what baton says on {host}"))
    }

    /// The output of a command on a host. A command that fails is an error.
    pub fn said(&self, host: &str, words: &[&str]) -> Result<String> {
        let mut command = self.running()?.exec(host)?;
        let output =
            (command.args(words).output()).with_context(|| format!("run {words:?} on {host}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("{words:?} on {host}: {}: {said}", output.status);
        }
        String::from_utf8(output.stdout).with_context(|| format!("read what {words:?} says"))
    }

    /// The output of the measured baton program on a host.
    pub fn baton(&self, host: &str, words: &[&str]) -> Result<String> {
        let baton = self.baton.to_str().context("its path is not UTF-8")?;
        self.said(host, &[&[baton], words].concat())
    }

    /// The sum of a counter over all nodes.
    pub fn counter(&self, name: &str) -> Result<u64> {
        self.nodes()?.iter().try_fold(0, |sum, host| {
            let value = self.counters(host)?[name].as_u64();
            Ok(sum + value.with_context(|| format!("{host} has no counter {name}"))?)
        })
    }

    fn counters(&self, host: &str) -> Result<Value> {
        Ok(self.ask(host, &["status"])?["counters"].take())
    }

    /// The hosts on which a daemon runs.
    pub fn nodes(&self) -> Result<Vec<String>> {
        let hosts = self.running()?.lab().hosts().iter();
        Ok(hosts
            .filter(|host| host.thing("node").is_some())
            .map(|host| host.name.as_str().to_owned())
            .collect())
    }

    /// The process of a host's daemon.
    pub fn daemon(&self, host: &str) -> Result<u32> {
        self.process(host, "node")
    }

    /// The process of the program that runs on a host under this name.
    pub fn process(&self, host: &str, name: &str) -> Result<u32> {
        let view = self.running()?.host(host)?;
        let thing = view.things.iter().find(|thing| thing.name == name);
        let thing = thing.with_context(|| format!("{host} runs no {name}"))?;
        if !thing.alive {
            bail!("{name} on {host} has ended: see {}", thing.log.display());
        }
        Ok(thing.pid)
    }
}

impl Drop for BenchLab {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.running.take().map(Running::down) {
            eprintln!("bench: {error}");
        }
    }
}

/// The full path of a file of this folder.
pub(crate) fn in_bench(name: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let path = path
        .canonicalize()
        .with_context(|| format!("find {}", path.display()))?;
    path.into_os_string()
        .into_string()
        .map_err(|path| anyhow!("{path:?} is not UTF-8"))
}

/// Takes the lock of all benchmarks. Two at the same time would disturb each other's results.
fn lock(results: &Path) -> Result<Flock<File>> {
    std::fs::create_dir_all(results).with_context(|| format!("make {}", results.display()))?;
    let path = results.join("lock");
    let file = File::create(&path).with_context(|| format!("open {}", path.display()))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| {
        anyhow!(
            "{} is locked ({errno}): another run is under way",
            path.display()
        )
    })
}
