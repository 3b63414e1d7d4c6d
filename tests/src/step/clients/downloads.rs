//! A step with long downloads, which run while other steps happen.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use tempfile::{NamedTempFile, TempPath};

use super::get::{has_bytes_of, sha256};
use crate::slowness;
use crate::span::{Span, seconds};
use crate::step::Step;
use crate::world::{CLUSTER, World};

/// Downloads a file several times at once, each over a connection of its own and without a retry. The other steps
/// begin when each download has got its first bytes. The downloads are slow while these steps run, and then take the
/// rest as fast as it comes. None may end before that, and each must have the right bytes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Downloads {
    path: String,
    /// The digest of the page, for a page that is not one of the lab's files.
    sha256: Option<String>,
    /// The number of downloads at the same time.
    count: usize,
    /// The rate of each download while it is slow, in bytes a second.
    #[serde(default = "half_a_million")]
    rate: u32,
    #[serde(default = "limit")]
    within: Span,
    /// The steps that run meanwhile.
    meanwhile: Vec<Step>,
}

/// One download.
struct Download {
    curl: Child,
    /// The bytes that have come. The file is removed when this is dropped.
    file: TempPath,
}

/// The number of bytes that are read at once.
const PIECE: usize = 1 << 16;

impl Downloads {
    /// Runs the step.
    ///
    /// # Errors
    /// A step or a download failed.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let (slow, begun) = (AtomicBool::new(true), AtomicUsize::new(0));
        let piece = Duration::from_secs(PIECE as u64) / self.rate * slowness::factor();
        thread::scope(|scope| {
            let mut downloads = Vec::new();
            for _ in 0..self.count {
                let mut one = self.start(world)?;
                let stdout = one.curl.stdout.take().context("curl has no output")?;
                let file = File::create(&one.file)?;
                let reader = scope.spawn(|| read(stdout, file, piece, &slow, &begun));
                downloads.push((one, reader));
            }
            // A download that ends without a byte counts as begun, too: its exit status says why it ended.
            while begun.load(Ordering::Relaxed) < self.count {
                thread::sleep(Duration::from_millis(20));
            }
            let steps = self.meanwhile.iter().try_for_each(|step| {
                step.run(world)
                    .with_context(|| format!("meanwhile, {step}"))
            });
            let mut early = Vec::new();
            for (one, _) in &mut downloads {
                early.push(one.curl.try_wait()?.is_some());
            }
            slow.store(false, Ordering::Relaxed);
            let mut ends = Vec::new();
            for ((one, reader), early) in downloads.into_iter().zip(early) {
                // The reader ends with curl's output, and curl ends in time.
                let read = reader.join();
                ends.push((one.curl.wait_with_output()?, read, early, one.file));
            }
            steps?;
            for (number, (output, read, early, file)) in ends.into_iter().enumerate() {
                let said = String::from_utf8_lossy(&output.stderr);
                let status = output.status;
                ensure!(status.success(), "download {number}: {status} {said}");
                ensure!(!early, "download {number} was over before the steps");
                ensure!(matches!(read, Ok(Ok(()))), "download {number} was not read");
                self.check(&file)
                    .with_context(|| format!("download {number}"))?;
            }
            Ok(())
        })
    }

    fn check(&self, file: &Path) -> Result<()> {
        let Some(expected) = &self.sha256 else {
            let name = self.path.rsplit('/').next().unwrap_or_default();
            return has_bytes_of(file, name);
        };
        let sum = sha256(file)?;
        ensure!(sum == *expected, "sha256 {sum} instead of {expected}");
        Ok(())
    }

    fn start(&self, world: &World) -> Result<Download> {
        // The file has a name of its own because several downloads run at the same time.
        let file = NamedTempFile::new_in(world.scratch.path())?.into_temp_path();
        let curl = world
            .command("client", self.within.0)?
            .args(["curl", "-sS", "--fail", "--retry", "0"])
            .arg(format!("http://{CLUSTER}{}", self.path))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start curl")?;
        Ok(Download { curl, file })
    }
}

/// Reads the output slowly while `slow` is set. A slow reader slows the sender down.
fn read(
    mut from: ChildStdout,
    mut to: File,
    piece: Duration,
    slow: &AtomicBool,
    begun: &AtomicUsize,
) -> std::io::Result<()> {
    let mut buffer = vec![0; PIECE];
    let mut first = true;
    loop {
        let read = from.read(&mut buffer);
        if std::mem::take(&mut first) {
            begun.fetch_add(1, Ordering::Relaxed);
        }
        let length = read?;
        if length == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..length])?;
        if slow.load(Ordering::Relaxed) {
            thread::sleep(piece * length as u32 / PIECE as u32);
        }
    }
}

fn half_a_million() -> u32 {
    500_000
}

fn limit() -> Span {
    seconds(600)
}
