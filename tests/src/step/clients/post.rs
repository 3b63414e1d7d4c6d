//! A step in which curl sends bodies.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::get::{cluster, sha256};
use crate::span::seconds;
use crate::world::World;

/// Sends a body of every size to every address. The page answers with the body's length and, except from nginx, its
/// SHA-256 digest.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Post {
    /// The sizes of the bodies, in bytes.
    sizes: Vec<u64>,
    /// The cluster addresses.
    #[serde(default = "cluster")]
    at: Vec<String>,
    /// Whether bodies are sent with `Transfer-Encoding: chunked`.
    #[serde(default)]
    chunked: bool,
    /// Whether requests have `Expect: 100-continue`, which the server must answer before the body is sent.
    #[serde(default)]
    expect_100: bool,
    /// Whether the answer must hold the digest.
    #[serde(default)]
    digest: bool,
}

impl Post {
    /// Runs the step.
    ///
    /// # Errors
    /// A request failed, or the server read another body.
    pub fn run(&self, world: &mut World) -> Result<()> {
        for size in &self.sizes {
            let body = world.scratch.path().join("upload");
            write_body(&body, *size)?;
            let sum = sha256(&body)?;
            for address in &self.at {
                self.send(world, address, &body, *size, &sum)
                    .with_context(|| format!("{size} bytes to {address}"))?;
            }
        }
        Ok(())
    }

    fn send(&self, world: &World, address: &str, body: &Path, size: u64, sum: &str) -> Result<()> {
        let mut command = world.command("client", seconds(300).0)?;
        // curl waits 30 s for the status 100. By default it would send the body after one second in any case.
        command.args(["curl", "-sS", "-v", "--fail", "--expect100-timeout", "30"]);
        command.args([
            "-H",
            if self.expect_100 {
                "Expect: 100-continue"
            } else {
                "Expect:"
            },
        ]);
        if self.chunked {
            command.args(["-H", "Transfer-Encoding: chunked"]);
        }
        command
            .arg("--data-binary")
            .arg(format!("@{}", body.display()));
        let output = command.arg(format!("http://{address}/upload")).output()?;
        let (answer, trace) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        ensure!(output.status.success(), "curl: {}\n{trace}", output.status);
        ensure!(
            !self.expect_100 || trace.contains("< HTTP/1.1 100 Continue"),
            "no 100 Continue came:\n{trace}"
        );
        let mut words = answer.split_whitespace();
        let length = words.next().unwrap_or_default();
        ensure!(length == size.to_string(), "the server read {length} bytes");
        match words.next() {
            Some(read) => ensure!(
                read == sum,
                "the server read other bytes: sha256 {read} instead of {sum}"
            ),
            None => ensure!(!self.digest, "the server gives no digest: {answer}"),
        }
        Ok(())
    }
}

/// Writes bytes without a pattern, which are the same at every run.
fn write_body(path: &Path, size: u64) -> Result<()> {
    let mut file = File::create(path)?;
    let mut random = fastrand::Rng::with_seed(size);
    let mut block = vec![0; 1 << 20];
    let mut left = size;
    while left > 0 {
        random.fill(&mut block);
        // The number is at most the block's 1 MiB, so the conversion is exact.
        let take = left.min(block.len() as u64) as usize;
        file.write_all(&block[..take])?;
        left -= take as u64;
    }
    Ok(())
}
