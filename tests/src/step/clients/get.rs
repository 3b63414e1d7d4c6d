//! A step in which curl fetches pages.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use baton_lab::servers::{FILES, SUMS};
use serde::Deserialize;
use serde_json::Value;

use crate::span::{Span, seconds};
use crate::world::World;

/// Exit statuses of curl(1): could not connect, nothing came back, failure in receiving.
const REFUSED_OR_RESET: [i32; 3] = [7, 52, 56];

/// Fetches every path from every address.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Get {
    paths: Vec<String>,
    /// The cluster addresses.
    #[serde(default = "cluster")]
    at: Vec<String>,
    /// How often each path is fetched.
    #[serde(default = "once")]
    times: usize,
    /// Whether all fetches share one connection. Otherwise each has its own, with `Connection: close`.
    #[serde(default)]
    one_connection: bool,
    /// Whether each page must be answered by the data server that its path names. The path then begins with /dsN/.
    #[serde(default)]
    by_pool: bool,
    /// Whether curl sends HEAD instead of GET.
    #[serde(default)]
    head: bool,
    /// The number of bytes of further fields in the request's head, so that it comes in several segments.
    #[serde(default)]
    header_bytes: usize,
    /// The expected status of each path's answer; paths beyond the list's end expect 200.
    #[serde(default)]
    statuses: Vec<u64>,
    /// The lab's file whose bytes are expected.
    same_as: Option<String>,
    /// The expected digest, for a page that is not one of the lab's files.
    sha256: Option<String>,
    /// Expects that every attempt ends with a refusal or a reset within this time, which includes the start of curl.
    fails_within: Option<Span>,
    /// Further arguments of curl.
    #[serde(default)]
    curl: Vec<String>,
}

/// The part of curl's report on one transfer that the step needs: `%{json}` in curl(1).
struct Transfer {
    status: u64,
    connects: u64,
    error: String,
    /// The host that has answered, as its server names it.
    by: String,
}

impl Get {
    /// Runs the step.
    ///
    /// # Errors
    /// A request failed (or succeeded although it should fail), or its bytes are wrong.
    pub fn run(&self, world: &mut World) -> Result<()> {
        for address in &self.at {
            match self.fails_within {
                Some(limit) => self.fail(world, address, limit.0),
                None => self.succeed(world, address),
            }
            .with_context(|| format!("from {address}"))?;
        }
        Ok(())
    }

    fn succeed(&self, world: &World, address: &str) -> Result<()> {
        let paths: Vec<&str> = (0..self.times)
            .flat_map(|_| &self.paths)
            .map(String::as_str)
            .collect();
        let mut command = self.curl(world)?;
        let file = |index: usize| world.scratch.path().join(format!("body-{index}"));
        for (index, path) in paths.iter().enumerate() {
            command
                .arg("-o")
                .arg(file(index))
                .arg(format!("http://{address}{path}"));
        }
        let output = command.output().context("cannot run curl")?;
        let transfers = transfers(&output)?;
        for (index, (transfer, path)) in transfers.iter().zip(&paths).enumerate() {
            ensure!(
                transfer.status == self.status(index),
                "{path}: status {} {}",
                transfer.status,
                transfer.error
            );
            let pool = path.split('/').nth(1).unwrap_or_default();
            ensure!(
                !self.by_pool || transfer.by == pool,
                "{path} is answered by {:?}",
                transfer.by
            );
        }
        ensure!(
            output.status.success() && transfers.len() == paths.len(),
            "curl: {}, {} of {} transfers\n{}",
            output.status,
            transfers.len(),
            paths.len(),
            String::from_utf8_lossy(&output.stderr)
        );
        let connects: u64 = transfers.iter().map(|transfer| transfer.connects).sum();
        let expected = if self.one_connection {
            1
        } else {
            paths.len() as u64
        };
        ensure!(
            connects == expected,
            "{connects} connections for {} requests instead of {expected}",
            paths.len()
        );
        for (index, path) in paths.iter().enumerate() {
            if self.status(index) == 200 {
                self.check(&file(index), path)
                    .with_context(|| path.to_string())?;
            }
            // The file may be missing: HEAD leaves the head there, and an empty body leaves no file.
            let _ = std::fs::remove_file(file(index));
        }
        Ok(())
    }

    /// The expected status of the answer to the request with this number.
    fn status(&self, index: usize) -> u64 {
        let status = self.statuses.get(index % self.paths.len());
        status.copied().unwrap_or(200)
    }

    fn fail(&self, world: &World, address: &str, limit: Duration) -> Result<()> {
        for path in self
            .paths
            .iter()
            .cycle()
            .take(self.times * self.paths.len())
        {
            let begin = Instant::now();
            let output = self
                .curl(world)?
                .arg(format!("http://{address}{path}"))
                .output()?;
            let (code, took) = (output.status.code(), begin.elapsed());
            ensure!(
                code.is_some_and(|code| REFUSED_OR_RESET.contains(&code)),
                "{path} was to be refused or reset, but curl ended with {}",
                output.status
            );
            ensure!(
                took < limit,
                "{path} was refused or reset only after {took:?}"
            );
        }
        Ok(())
    }

    fn curl(&self, world: &World) -> Result<Command> {
        let mut command = world.command("client", seconds(300).0)?;
        command
            .args(["curl", "-sS", "-w", "%{json}\\t%header{x-served-by}\\n"])
            .args(&self.curl);
        if self.head {
            command.arg("--head");
        }
        if !self.one_connection {
            command.args(["-H", "Connection: close"]);
        }
        for field in fields(self.header_bytes) {
            command.args(["-H", &field]);
        }
        Ok(command)
    }

    fn check(&self, file: &Path, path: &str) -> Result<()> {
        let name = self
            .same_as
            .as_deref()
            .unwrap_or(path)
            .rsplit('/')
            .next()
            .unwrap_or_default();
        let known = FILES.iter().find(|(known, _)| *known == name);
        if self.head {
            let header = std::fs::read_to_string(file)?.to_lowercase();
            // Apache leaves the field out for an empty body.
            let length = known.filter(|(_, bytes)| *bytes > 0);
            let length = length.map(|(_, bytes)| format!("content-length: {bytes}\r\n"));
            ensure!(
                length.is_none_or(|length| header.contains(&length)),
                "the header is\n{header}"
            );
            return Ok(());
        }
        if let Some(expected) = &self.sha256 {
            let sum = sha256(file)?;
            ensure!(sum == *expected, "sha256 {sum} instead of {expected}");
        }
        let Some((_, bytes)) = known else {
            return Ok(());
        };
        let length = file.metadata().map_or(0, |meta| meta.len());
        ensure!(length == *bytes, "{length} bytes instead of {bytes}");
        if length == 0 {
            return Ok(());
        }
        has_bytes_of(file, name)
    }
}

/// The path of the lab's file that a page serves, found by the last part of the page's path.
///
/// # Errors
/// The page is not one of the lab's files.
pub(crate) fn lab_file(page: &str) -> Result<PathBuf> {
    let name = page.rsplit('/').next().unwrap_or_default();
    baton_lab::servers::file(name).with_context(|| format!("{page} is not one of the lab's files"))
}

/// Checks that a file holds the same bytes as this file of the lab.
///
/// # Errors
/// The file holds other bytes.
pub(crate) fn has_bytes_of(file: &Path, name: &str) -> Result<()> {
    let (expected, sum) = (listed(name).unwrap_or_default(), sha256(file)?);
    ensure!(
        sum == expected,
        "the bytes are wrong: sha256 {sum} instead of {expected:?}"
    );
    Ok(())
}

/// Computes the SHA-256 digest of a file.
///
/// # Errors
/// The file cannot be read.
pub fn sha256(file: &Path) -> Result<String> {
    let output = Command::new("sha256sum")
        .arg(file)
        .output()
        .context("cannot run sha256sum")?;
    match String::from_utf8_lossy(&output.stdout)
        .split_whitespace()
        .next()
    {
        Some(sum) if output.status.success() => Ok(sum.to_owned()),
        _ => bail!("sha256sum: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

fn listed(name: &str) -> Option<&'static str> {
    SUMS.lines()
        .filter_map(|line| line.split_once("  "))
        .find(|(_, file)| *file == name)
        .map(|(sum, _)| sum)
}

fn transfers(output: &Output) -> Result<Vec<Transfer>> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| {
            let (line, by) = line.rsplit_once('\t').unwrap_or((line, ""));
            let json: Value = serde_json::from_str(line).context("curl's report is no JSON")?;
            Ok(Transfer {
                status: json["http_code"].as_u64().unwrap_or(0),
                connects: json["num_connects"].as_u64().unwrap_or(0),
                error: json["errormsg"].as_str().unwrap_or_default().to_owned(),
                by: by.to_owned(),
            })
        })
        .collect()
}

/// Header fields of so many bytes together, line ends included. None is longer than servers accept (nginx: 8 KiB a
/// field by default).
pub(crate) fn fields(bytes: usize) -> Vec<String> {
    const LONGEST: usize = 4096;
    const FRAME: usize = "X-Fill: \r\n".len();
    let mut left = bytes;
    let mut fields = Vec::new();
    while left > 0 {
        // The value has at least one byte, because curl leaves out a field without a value.
        let value = left.min(LONGEST).saturating_sub(FRAME).max(1);
        fields.push(format!("X-Fill: {}", "f".repeat(value)));
        left = left.saturating_sub(FRAME + value);
    }
    fields
}

/// The lab's cluster address, as a list.
pub fn cluster() -> Vec<String> {
    vec![crate::world::CLUSTER.to_string()]
}

pub(crate) fn once() -> usize {
    1
}

#[cfg(test)]
mod tests {
    use super::fields;

    #[test]
    fn fields_are_as_long_as_asked_for() {
        for bytes in [0, 11, 4096, 6000, 16_000] {
            let fields = fields(bytes);
            let length: usize = fields.iter().map(|field| field.len() + "\r\n".len()).sum();
            assert_eq!(length, bytes);
        }
    }
}
