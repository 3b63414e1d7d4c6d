//! A step with many clients at the same time, most of which do nothing while other steps run.

use std::net::TcpStream;
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use super::http::{ask, connect};
use crate::step::Step;
use crate::world::{CLUSTER, World};

/// Opens connections that stay open after one request, and starts downloads by curl that are not retried. At the end
/// each connection sends one more request, and every download must be complete.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crowd {
    /// The number of connections with one request at the beginning and one at the end.
    #[serde(default)]
    idle: usize,
    /// Data servers that must not answer the last requests.
    #[serde(default)]
    not_by: Vec<String>,
    #[serde(default)]
    downloads: Vec<Download>,
    /// The steps that run meanwhile.
    #[serde(default)]
    meanwhile: Vec<Step>,
}

/// Downloads by curl.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Download {
    path: String,
    /// The length of the page.
    bytes: u64,
    clients: u32,
    /// The rate of each client, in the form of curl's --limit-rate.
    rate: String,
}

const LONGEST: Duration = Duration::from_secs(300);

impl Crowd {
    /// Runs the step.
    ///
    /// # Errors
    /// A step failed, a connection ended, or a download is incomplete.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let mut streams = world.lab.within("client", || open(self.idle))??;
        let children: Vec<Child> = (self.downloads.iter())
            .map(|download| download.begin(world))
            .collect::<Result<_>>()?;
        let steps = self.meanwhile.iter().try_for_each(|step| {
            step.run(world)
                .with_context(|| format!("meanwhile, {step}"))
        });
        let outputs: Vec<Output> = (children.into_iter())
            .map(Child::wait_with_output)
            .collect::<Result<_, _>>()?;
        steps?;
        for (download, output) in self.downloads.iter().zip(&outputs) {
            download.judge(output)?;
        }
        for (number, stream) in streams.iter_mut().enumerate() {
            let host = ask(stream).with_context(|| format!("connection {number}, at the end"))?;
            ensure!(
                !self.not_by.contains(&host),
                "connection {number} is answered by {host}"
            );
        }
        Ok(())
    }
}

fn open(count: usize) -> Result<Vec<TcpStream>> {
    (0..count)
        .map(|number| {
            let mut stream = connect(None, 80)?;
            ask(&mut stream).with_context(|| format!("connection {number}, at the beginning"))?;
            Ok(stream)
        })
        .collect()
}

impl Download {
    fn begin(&self, world: &World) -> Result<Child> {
        let clients = self.clients.to_string();
        world
            .command("client", LONGEST)?
            .args(["curl", "-sS", "--retry", "0", "-Z", "--parallel-immediate"])
            .args(["--parallel-max", &clients, "--limit-rate", &self.rate])
            .args([
                "-o",
                "/dev/null",
                "-w",
                "%{exitcode} %{http_code} %{size_download}\\n",
            ])
            .arg(format!("http://{CLUSTER}{}?[1-{clients}]", self.path))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start curl")
    }

    fn judge(&self, output: &Output) -> Result<()> {
        let text = String::from_utf8_lossy(&output.stdout);
        let whole = format!("0 200 {}", self.bytes);
        let good = text.lines().filter(|line| *line == whole).count();
        if good != self.clients as usize || !output.status.success() {
            let bad: Vec<_> = text.lines().filter(|line| *line != whole).take(5).collect();
            bail!(
                "{good} of {} downloads of {} came whole ({}): {bad:?}\n{}",
                self.clients,
                self.path,
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(())
    }
}
