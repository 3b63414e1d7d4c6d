//! A step with long downloads, during which other steps disturb the data servers that answer.

use std::io::Read;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use super::get::lab_file;
use crate::span::{Span, seconds};
use crate::step::{Step, meanwhile};
use crate::wait::patience;
use crate::world::{CLUSTER, World};

/// Exit status of curl(1): failure in receiving.
const BROKEN: i32 = 56;
/// Exit status of curl(1): only a part of the file came.
const PARTIAL: i32 = 18;

/// Starts several downloads at once, each with a rate of its own. When all have begun, other steps happen. Every byte
/// that comes is compared with the right one, however the download ends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interrupted {
    times: usize,
    #[serde(default = "large")]
    path: String,
    /// The file whose bytes must come, if the path is not that of one of the lab's files. `{dir}` is the client's
    /// directory.
    file: Option<String>,
    /// The rate of the slowest download, in bytes a second; the fastest is three times as fast.
    rate: u64,
    /// How many downloads at most may break off. Those that do must end by a RST.
    #[serde(default)]
    broken_at_most: usize,
    #[serde(default)]
    broken_at_least: usize,
    /// Whether downloads may also end early by a FIN, as the kernel ends the connections of a program that dies.
    #[serde(default)]
    or_by_fin: bool,
    /// How long all downloads together may take.
    #[serde(default = "limit")]
    within: Span,
    meanwhile: Vec<Step>,
}

/// The result of one download.
struct Download {
    bytes: usize,
    whole: bool,
    broken: bool,
    report: String,
}

impl Interrupted {
    /// Runs the step.
    ///
    /// # Errors
    /// A byte is wrong, a download ends in a way that is not allowed, or a step failed.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let file = match &self.file {
            Some(file) => world.fill("client", file)?.into(),
            None => lab_file(&self.path)?,
        };
        let content = std::fs::read(&file);
        let content = content.with_context(|| format!("cannot read {}", file.display()))?;
        let content = Arc::new(content);
        let begun = Arc::new(AtomicUsize::new(0));
        let downloads = (0..self.times)
            .map(|turn| self.start(world, turn, &content, &begun))
            .collect::<Result<Vec<_>>>()?;
        let begin = Instant::now();
        while begun.load(Ordering::Relaxed) < self.times {
            ensure!(
                begin.elapsed() < patience().0,
                "only {begun:?} downloads have begun"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        let steps = meanwhile(&self.meanwhile, world);
        let mut broken = 0;
        let mut wrong = Vec::new();
        for (turn, download) in downloads.into_iter().enumerate() {
            let Ok(ended) = download.join() else {
                bail!("the thread of download {turn} panicked");
            };
            match ended {
                Ok(download) if download.whole => {}
                Ok(download) if download.broken => broken += 1,
                Ok(download) => wrong.push(format!(
                    "download {turn} ended after {} bytes: {}",
                    download.bytes, download.report
                )),
                Err(error) => wrong.push(format!("download {turn}: {error:#}")),
            }
        }
        steps?;
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        eprintln!("  {broken} of {} downloads were broken off", self.times);
        ensure!(
            (self.broken_at_least..=self.broken_at_most).contains(&broken),
            "{broken} of {} downloads were broken off",
            self.times
        );
        Ok(())
    }

    fn start(
        &self,
        world: &World,
        turn: usize,
        content: &Arc<Vec<u8>>,
        begun: &Arc<AtomicUsize>,
    ) -> Result<JoinHandle<Result<Download>>> {
        let rate = self.rate + 2 * self.rate * turn as u64 / self.times.max(1) as u64;
        let mut curl = world.command("client", self.within.0)?;
        let child = curl
            .args(["curl", "-sS", "-N", "--retry", "0", "--limit-rate"])
            .arg(rate.to_string())
            .arg(format!("http://{CLUSTER}{}", self.path))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start curl")?;
        let (content, begun) = (Arc::clone(content), Arc::clone(begun));
        let errors: &[i32] = if self.or_by_fin {
            &[BROKEN, PARTIAL]
        } else {
            &[BROKEN]
        };
        let follow = move || follow(child, &content, &begun, errors);
        Ok(std::thread::spawn(follow))
    }
}

/// Follows one download and compares its bytes. `errors` are the exit statuses of curl that mean that the connection
/// was broken off.
fn follow(
    mut curl: Child,
    content: &[u8],
    begun: &AtomicUsize,
    errors: &[i32],
) -> Result<Download> {
    let mut output = curl.stdout.take().context("curl has no output")?;
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0;
    loop {
        let read = output.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        if bytes == 0 {
            begun.fetch_add(1, Ordering::Relaxed);
        }
        let right = content.get(bytes..bytes + read);
        if right != Some(&buffer[..read]) {
            let _ = curl.kill();
            let _ = curl.wait();
            bail!("a wrong byte among the {read} after the first {bytes}");
        }
        bytes += read;
    }
    let ended = curl.wait_with_output()?;
    Ok(Download {
        bytes,
        whole: ended.status.success() && bytes == content.len(),
        broken: ended
            .status
            .code()
            .is_some_and(|code| errors.contains(&code))
            && bytes < content.len(),
        report: format!(
            "{} {}",
            ended.status,
            String::from_utf8_lossy(&ended.stderr).trim()
        ),
    })
}

fn large() -> String {
    "/64m".into()
}

fn limit() -> Span {
    seconds(300)
}
