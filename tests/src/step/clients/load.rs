//! A step that sends load by wrk or ab, while other steps happen. No request may fail, unless its connection was ended
//! on purpose.

pub(super) mod running;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use baton_lab::Signal;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde::Deserialize;

use self::running::{Going, Judge, Tool};
use crate::slowness;
use crate::span::{Span, seconds};
use crate::step::{Step, meanwhile};
use crate::world::{CLUSTER, World};

/// How long a client waits for one answer, in seconds. On slow machines an answer may need many retransmissions.
const PATIENCE: u32 = 60;
/// A time limit that is longer than any load takes, including ab's hundreds of thousands of requests on a busy
/// machine.
const LONGEST: Duration = Duration::from_secs(3600);

/// The program that sends the load, and its parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    tool: Tool,
    #[serde(default = "page")]
    path: String,
    /// For wrk: paths that are asked for in turn, in place of the one path.
    #[serde(default)]
    paths: Vec<String>,
    /// The cluster address.
    #[serde(default = "cluster")]
    at: String,
    /// The number of connections at the same time.
    #[serde(default = "sixteen")]
    connections: u32,
    /// Whether each request gets a connection of its own.
    #[serde(default)]
    close: bool,
    /// For wrk: how long the load lasts, or as long as the steps meanwhile take if that is longer.
    #[serde(default = "five_seconds")]
    r#for: Span,
    /// For ab: the number of requests.
    #[serde(default)]
    requests: u32,
    /// The greatest number of segments that the client may retransmit in all. Each retransmission means a wait for a
    /// timer.
    sent_again_at_most: Option<u64>,
    /// Whether requests may fail, because the steps meanwhile end connections.
    #[serde(default)]
    may_fail: bool,
    /// The steps that run meanwhile.
    #[serde(default)]
    meanwhile: Vec<Step>,
}

impl Load {
    /// Starts the load, which goes on until [`Going::end`].
    ///
    /// # Errors
    /// The program is not wrk, or cannot be started.
    pub fn begin(&self, world: &World) -> Result<Going> {
        ensure!(
            matches!(self.tool, Tool::Wrk) && self.meanwhile.is_empty(),
            "only wrk without steps meanwhile goes on until it is told to end"
        );
        let child = self.command(world, LONGEST)?.spawn();
        Ok(Going {
            child: child.context("cannot start the load")?,
            judge: self.judge(),
        })
    }

    /// Runs the step.
    ///
    /// # Errors
    /// A step or a request failed.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let (begin, sent_again) = (Instant::now(), sent_again(world)?);
        // If other steps run meanwhile, this process ends the load, so its time limit is longer.
        let more = Duration::from_secs(if self.meanwhile.is_empty() { 0 } else { 240 });
        let mut child = self
            .command(world, self.r#for.0 + more)?
            .spawn()
            .context("cannot start the load")?;
        let steps = meanwhile(&self.meanwhile, world);
        if !self.meanwhile.is_empty() {
            ensure!(
                child.try_wait()?.is_none(),
                "the load was over before the steps"
            );
            std::thread::sleep(self.r#for.0.saturating_sub(begin.elapsed()));
            // On SIGINT wrk ends early and prints its report.
            kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT)?;
        }
        let output = child.wait_with_output()?;
        steps?;
        self.judge().check(&output)?;
        let Some(most) = self.sent_again_at_most else {
            return Ok(());
        };
        let sent_again = self::sent_again(world)? - sent_again;
        eprintln!("  the client sent {sent_again} segments again");
        ensure!(
            sent_again <= most,
            "the client sent {sent_again} segments again, not {most} or fewer"
        );
        Ok(())
    }

    fn judge(&self) -> Judge {
        Judge {
            tool: self.tool,
            requests: self.requests,
            may_fail: self.may_fail,
        }
    }

    fn command(&self, world: &World, length: Duration) -> Result<Command> {
        let mut command = world.command("client", self.r#for.0 + LONGEST)?;
        let url = format!("http://{}{}", self.at, self.path);
        let connections = self.connections.to_string();
        let patience = PATIENCE * slowness::factor();
        let patience = patience.to_string();
        match self.tool {
            Tool::Wrk => {
                let length = format!("{}s", length.as_secs());
                command.args([
                    "wrk",
                    "-t1",
                    "--latency",
                    "--timeout",
                    &patience,
                    "-c",
                    &connections,
                    "-d",
                    &length,
                ]);
                if self.close {
                    command.args(["-H", "Connection: close"]);
                }
                let script = world.scratch.path().join("load.lua");
                std::fs::write(&script, script_of(&self.paths))?;
                command.arg("-s").arg(script);
            }
            Tool::Ab => {
                ensure!(self.meanwhile.is_empty(), "steps meanwhile need wrk");
                ensure!(self.requests > 0, "say how many `requests` ab is to make");
                let requests = self.requests.to_string();
                // `-l` lets answers differ in length, because hosts' names do.
                command.args([
                    "ab",
                    "-q",
                    "-l",
                    "-s",
                    &patience,
                    "-c",
                    &connections,
                    "-n",
                    &requests,
                ]);
                if !self.close {
                    command.arg("-k");
                }
            }
        }
        command
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(command)
    }
}

/// The script for wrk: it asks for these paths, if there are any, one after the other over whatever connection is
/// free, and waits before each request. Without the wait, wrk would ask as fast as the machine can, which takes
/// processor time from the labs beside this one.
fn script_of(paths: &[String]) -> String {
    let mut script = "function delay()\n    return 20\nend\n".to_owned();
    if !paths.is_empty() {
        let list: Vec<String> = paths.iter().map(|path| format!("{path:?}")).collect();
        script += &format!(
            "local paths = {{ {} }}\nlocal turn = 0\nfunction request()\n    turn = turn % #paths + 1\n    \
             return wrk.format(\"GET\", paths[turn])\nend\n",
            list.join(", ")
        );
    }
    script
}

/// The number of segments that the client's kernel has retransmitted so far: RetransSegs of RFC 4022, read from two
/// lines of which the first names the columns of the second (proc_pid_net(5)).
fn sent_again(world: &World) -> Result<u64> {
    let read = || std::fs::read_to_string("/proc/thread-self/net/snmp");
    let text = world.lab.within("client", read)??;
    let mut lines = text.lines().filter(|line| line.starts_with("Tcp: "));
    let (names, values) = lines.next().zip(lines.next()).context("no TCP in snmp")?;
    let mut columns = names.split(' ').zip(values.split(' '));
    let (_, value) = columns
        .find(|(name, _)| *name == "RetransSegs")
        .context("no RetransSegs in snmp")?;
    Ok(value.parse()?)
}

fn page() -> String {
    "/4k".to_owned()
}

fn cluster() -> String {
    CLUSTER.to_string()
}

fn sixteen() -> u32 {
    16
}

fn five_seconds() -> Span {
    seconds(5)
}
