//! Steps for a host that has a service manager of its own: systemd is the first process of a PID namespace, and `baton
//! node` runs as the unit of `packaging/`, with all that confines it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::node::{StartNode, write_secret};
use super::service_manager::Manager;
use crate::wait::patience;
use crate::world::World;

/// Starts systemd on a host on which the lab runs no node. The step installs `baton` and its unit like `make install`,
/// but only this systemd sees them.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Systemd(StartNode);

/// Runs systemctl, or another program of systemd's, on such a host.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Systemctl {
    on: String,
    #[serde(default = "systemctl")]
    program: String,
    /// The arguments of the program.
    args: Vec<String>,
    /// Texts that the program must print. The step repeats the command until it does.
    #[serde(default)]
    says: Vec<String>,
}

/// The path of systemd on Debian.
const PROGRAM: &str = "/lib/systemd/systemd";

const UNIT: &str = include_str!("../../../../packaging/baton.service");

/// A drop-in of the unit: no journal runs, so the node logs to the file where the lab expects its log.
const LOG: &str = "[Service]\nStandardOutput=append:/run/baton/node.log\nStandardError=inherit\n";

/// The targets on which the unit depends. Nothing else that systems usually have is started.
const TARGETS: [&str; 4] = ["sysinit", "basic", "shutdown", "lab"];

/// The shell script that becomes systemd. $1 is the host's directory, $2 the program under test. systemd has
/// /usr/local, /etc, /run and the hierarchy of control groups for itself. The host's directory is /run/baton there, so
/// that the lab finds the control socket.
const INIT: &str = r#"
set -e
mount --make-rprivate /
umount -R /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t proc proc /proc
cd "$1/systemd"
mount -t tmpfs -o mode=755 tmpfs prefix
mkdir -p prefix/bin
touch prefix/bin/baton
mount --bind "$2" prefix/bin/baton
mount --rbind "$1/systemd/prefix" /usr/local
mount -t tmpfs -o mode=755 tmpfs etc
cp -a /etc/. etc/
rm -rf etc/systemd/system
mkdir -p etc/systemd/system etc/baton
cp -r units/. etc/systemd/system/
install -m 600 baton.toml etc/baton/baton.toml
find . -maxdepth 1 -name '*.pem' -exec install -m 600 {} etc/baton/ ';'
mount --rbind "$1/systemd/etc" /etc
mount -t tmpfs -o mode=755 tmpfs run
mkdir run/baton
mount --bind "$1" run/baton
mount --rbind "$1/systemd/run" /run
cd /
exec env -i PATH="$PATH" container=lab SYSTEMD_UNIT_PATH=/etc/systemd/system \
    "$3" --system --unit=lab.target --log-target=null --show-status=0
"#;

impl Systemd {
    /// Runs the step.
    ///
    /// # Errors
    /// systemd does not come up.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let on = self.0.host();
        let directory = world.directory(on)?;
        self.install(world, &directory)?;
        let lab = world.lab.lab().name().as_str().to_owned();
        let group = unified()?.join(format!("baton-systemd-{lab}-{on}"));
        std::fs::create_dir_all(&group)
            .with_context(|| format!("cannot make {}", group.display()))?;
        let enter = "echo $$ >\"$0/cgroup.procs\" && exec \"$@\"";
        let mut command = world.lab.exec(on)?;
        command.args(["sh", "-c", enter]).arg(&group);
        command.args(["unshare", "--mount", "--pid", "--cgroup", "--uts", "--ipc"]);
        command.args(["--fork", "--kill-child", "sh", "-c", INIT, "sh"]);
        command.arg(&directory).arg(&world.baton).arg(PROGRAM);
        let log = std::fs::File::create(directory.join("systemd.log"))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("cannot start systemd")?;
        let manager = Manager { child, group };
        world.managers.insert(on.to_owned(), manager);
        let up = Systemctl {
            on: on.to_owned(),
            program: systemctl(),
            args: vec!["is-system-running".into()],
            says: vec!["running".into()],
        };
        up.run(world).context("systemd does not come up")
    }

    fn install(&self, world: &World, directory: &Path) -> Result<()> {
        let place = directory.join("systemd");
        for name in ["units", "prefix", "etc", "run"] {
            std::fs::create_dir_all(place.join(name))?;
        }
        for target in TARGETS {
            let text = "[Unit]\nDefaultDependencies=no\n";
            std::fs::write(place.join("units").join(format!("{target}.target")), text)?;
        }
        let unit = UNIT.replace("@PREFIX@", "/usr/local");
        std::fs::write(place.join("units/baton.service"), unit)?;
        let more = place.join("units/baton.service.d");
        std::fs::create_dir_all(&more)?;
        std::fs::write(more.join("log.conf"), LOG)?;
        // The certificates that the configuration names are beside it.
        for file in std::fs::read_dir(world.directory(self.0.like())?)? {
            let file = file?.path();
            if let Some(name) = file.file_name()
                && file.extension().is_some_and(|kind| kind == "pem")
            {
                std::fs::copy(&file, place.join(name))?;
            }
        }
        let mut config = self.0.config(world)?;
        write_secret(&directory.join("baton.toml"), &config.to_string())?;
        // The unit sets no run_dir: the default is /run/baton, which is the host's directory.
        let local = config
            .get_mut("local")
            .and_then(|local| local.as_table_mut());
        local.context("no [local]")?.remove("run_dir");
        write_secret(&place.join("baton.toml"), &config.to_string())
    }
}

impl Systemctl {
    /// Runs the step.
    ///
    /// # Errors
    /// The program fails, or does not print the texts in time.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let begin = Instant::now();
        loop {
            let manager = world.managers.get_mut(&self.on);
            let manager = manager.with_context(|| format!("no systemd runs on {}", self.on))?;
            let outcome = self.once(manager);
            if outcome.is_ok() || self.says.is_empty() || begin.elapsed() > patience().0 {
                let took = begin.elapsed().as_secs_f64();
                eprintln!("  {}: {took:.1} s", self.line());
                return outcome;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn line(&self) -> String {
        format!("{} {}", self.program, self.args.join(" "))
    }

    fn once(&self, manager: &mut Manager) -> Result<()> {
        let output = manager
            .command()?
            .arg(&self.program)
            .args(&self.args)
            .output()?;
        let said = [&output.stdout[..], &output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let line = self.line();
        ensure!(
            output.status.success(),
            "{line} ended with {}:\n{said}",
            output.status
        );
        for part in &self.says {
            ensure!(said.contains(part), "{line} does not say {part:?}:\n{said}");
        }
        Ok(())
    }
}

fn systemctl() -> String {
    "systemctl".into()
}

/// The mount point of the hierarchy of control groups of version 2.
fn unified() -> Result<PathBuf> {
    let places = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
    let found = places
        .into_iter()
        .find(|place| place.join("cgroup.controllers").exists());
    found.context("no cgroup2 is mounted at /sys/fs/cgroup or below it")
}
