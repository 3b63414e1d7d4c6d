//! A step in which one curl visits every data server over one connection.

use std::io::Write as _;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::span::Span;
use crate::step::checks::log::until;
use crate::world::World;

/// One curl asks ds1, ds2 and so on in turn, by path, over one connection. Each answer must come from the right
/// server, and each server's access log must have exactly its requests, all from one port of the client.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tour {
    servers: usize,
    requests: usize,
    /// How long the servers may take to write their logs.
    #[serde(default = "crate::step::patience")]
    within: Span,
}

impl Tour {
    /// Runs the step.
    ///
    /// # Errors
    /// An answer is wrong, there is another connection, or a request is in the wrong log.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let answers = self.curl(world)?;
        let mut connects = 0;
        let mut lines = answers.lines();
        for number in 0..self.requests {
            let (host, path) = self.request(number);
            let answer = lines.next().unwrap_or_default();
            ensure!(
                answer == format!("{host} {path}"),
                "{path} is answered with {answer:?}"
            );
            connects += lines.next().unwrap_or_default().parse::<u64>()?;
        }
        ensure!(connects == 1, "{connects} connections instead of one");
        until(self.within, || self.check_logs(world))
    }

    fn request(&self, number: usize) -> (String, String) {
        let host = format!("ds{}", number % self.servers + 1);
        let path = format!("/{host}/tour-{number}");
        (host, path)
    }

    /// What curl prints: each answer, followed by the number of connections that were made for it.
    fn curl(&self, world: &World) -> Result<String> {
        let mut curl = world
            .command("client", self.within.0)?
            .args(["curl", "-sS", "-w", "%{num_connects}\\n", "-K", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run curl")?;
        let mut config = String::new();
        for number in 0..self.requests {
            let (_, path) = self.request(number);
            config += &format!("url = \"http://10.77.0.100{path}\"\n");
        }
        if let Some(mut input) = curl.stdin.take() {
            input.write_all(config.as_bytes())?;
        }
        let output = curl.wait_with_output()?;
        ensure!(output.status.success(), "curl: {}", output.status);
        Ok(String::from_utf8(output.stdout)?)
    }

    fn check_logs(&self, world: &World) -> Result<()> {
        let mut ports = Vec::new();
        for server in 0..self.servers {
            let host = format!("ds{}", server + 1);
            let text = std::fs::read_to_string(world.log_path(&host, "access")?)?;
            let of_tour: Vec<_> = text
                .lines()
                .filter(|line| line.contains("/tour-"))
                .collect();
            let expected = (server..self.requests).step_by(self.servers).count();
            ensure!(
                of_tour.len() == expected
                    && of_tour
                        .iter()
                        .all(|line| line.contains(&format!("/{host}/tour-"))),
                "{host} has logged {} requests instead of its {expected}",
                of_tour.len()
            );
            ports.extend(
                of_tour
                    .iter()
                    .filter_map(|line| Some(line.split(' ').nth(1)?.to_owned())),
            );
        }
        ports.dedup();
        ensure!(ports.len() == 1, "several ports of the client: {ports:?}");
        Ok(())
    }
}
