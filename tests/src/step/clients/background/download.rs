//! Downloads by curl, in which every byte is compared and every stall is noted.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use baton_lab::{Rate, Running};
use serde::Deserialize;

use super::super::get::lab_file;
use super::super::http::served_by;
use super::running::Orders;
use super::tally::{Failure, Tally};
use crate::span::{Span, seconds};
use crate::world::{CLUSTER, World};

/// The time limit of curl, in seconds. It is longer than any page takes at a reasonable rate; after it curl reports a
/// timeout.
const LONGEST: &str = "900";
/// The number of bytes that are compared at once.
const PIECE: usize = 64 << 10;

/// Clients that fetch a page again and again. The page must be one of the lab's files.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Download {
    path: String,
    /// How fast a client reads, until `finish`: it reads the rest of its last page as fast as it comes. `None` means
    /// as fast as it comes from the beginning.
    rate: Option<Rate>,
    #[serde(default = "one")]
    clients: usize,
    /// The time without a byte after which the client gives up, which is a failure.
    #[serde(default = "a_minute")]
    gives_up_after: Span,
}

/// One client, which downloads a page again and again.
struct Client {
    lab: Running,
    path: String,
    rate: Option<Rate>,
    gives_up_after: Span,
    /// The lab's file with the right bytes of the page.
    original: PathBuf,
    /// The file to which curl writes the response's head.
    header: PathBuf,
    orders: Arc<Orders>,
}

/// The way in which a download ended.
enum End {
    Whole,
    /// A byte differs, or there is one too many.
    WrongByte,
    Short,
    Abandoned,
}

impl Download {
    /// Starts the clients.
    ///
    /// # Errors
    /// The page is not one of the lab's files.
    pub fn begin(
        &self,
        world: &World,
        orders: &Arc<Orders>,
    ) -> Result<Vec<(String, thread::JoinHandle<Tally>)>> {
        let original = lab_file(&self.path)?;
        let clients = (0..self.clients).map(|number| {
            let name = format!("download {number} of {}", self.path);
            let header = format!("header{}-{number}", self.path.replace('/', "-"));
            let client = Client {
                lab: world.lab.clone(),
                path: self.path.clone(),
                rate: self.rate,
                gives_up_after: self.gives_up_after,
                original: original.clone(),
                header: world.scratch.path().join(header),
                orders: Arc::clone(orders),
            };
            (name, thread::spawn(move || client.run()))
        });
        Ok(clients.collect())
    }
}

impl Client {
    fn run(&self) -> Tally {
        let mut tally = Tally::default();
        // Each client downloads at least one page, however soon it is told to end.
        loop {
            if let Err(error) = self.page(&mut tally) {
                tally.failed.push(Failure {
                    servers: Vec::new(),
                    never_allowed: true,
                    what: format!("{error:#}"),
                });
            }
            if self.orders.ended() {
                return tally;
            }
        }
    }

    fn page(&self, tally: &mut Tally) -> Result<()> {
        let mut curl = self.curl()?.spawn().context("cannot run curl")?;
        let output = curl.stdout.take().context("curl has no output")?;
        let begin = Instant::now();
        let read = self.compare(output, tally);
        // curl has ended by itself, or is no longer needed.
        let _ = curl.kill();
        let said = said(curl)?;
        let (end, bytes) = read?;
        let failure = match end {
            End::Whole if said.is_empty() => {
                tally.done += 1;
                tally.bytes += bytes;
                return Ok(());
            }
            End::Abandoned => return Ok(()),
            End::Whole => said,
            End::WrongByte => format!("byte {bytes} is wrong"),
            End::Short => format!("it ended after {bytes} bytes; {said}"),
        };
        let head = std::fs::read_to_string(&self.header).unwrap_or_default();
        let named = self.path.trim_start_matches('/').split_once('/');
        let servers = served_by(&head)
            .into_iter()
            .chain(named.map(|(server, _)| server));
        tally.failed.push(Failure {
            servers: servers.map(str::to_owned).collect(),
            never_allowed: matches!(end, End::WrongByte),
            what: format!("{failure}, after {:.1?}", begin.elapsed()),
        });
        Ok(())
    }

    /// Reads all that curl writes, at the client's rate, and returns how the download ended and how many bytes were
    /// right. Time that the client itself takes does not count as a stall.
    fn compare(&self, mut from: ChildStdout, tally: &mut Tally) -> Result<(End, u64)> {
        let original = File::open(&self.original)
            .with_context(|| format!("cannot open {}", self.original.display()))?;
        let mut original = BufReader::with_capacity(PIECE, original);
        let (mut came, mut expected) = (vec![0; PIECE], vec![0; PIECE]);
        let mut bytes = 0_u64;
        let end = loop {
            let asked = Instant::now();
            let count = from.read(&mut came).context("cannot read from curl")?;
            let wait = asked.elapsed();
            tally.waits.add(self.orders.phases.now(), wait);
            let right = fill(&mut original, &mut expected[..count])?;
            let same = (came[..count].iter().zip(&expected[..right])).position(|(a, b)| a != b);
            if let Some(at) = same.or((right < count).then_some(right)) {
                bytes += at as u64;
                break End::WrongByte;
            }
            bytes += count as u64;
            if count == 0 {
                let more = fill(&mut original, &mut expected[..1])?;
                break if more == 0 { End::Whole } else { End::Short };
            }
            if self.orders.abandoned() {
                break End::Abandoned;
            }
            self.take_time(count);
        };
        Ok((end, bytes))
    }

    fn take_time(&self, bytes: usize) {
        if let Some(rate) = self.rate
            && !self.orders.ended()
        {
            let bits = bytes as f64 * 8.0;
            thread::sleep(Duration::from_secs_f64(bits / rate.bits() as f64));
        }
    }

    fn curl(&self) -> Result<Command> {
        let mut curl = self.lab.exec("client")?;
        curl.args(["curl", "-sS", "-f", "-N", "--retry", "0", "--max-time"])
            .args([LONGEST, "--speed-limit", "1", "--speed-time"])
            .arg(self.gives_up_after.0.as_secs().to_string())
            .arg("-D")
            .arg(&self.header)
            .arg(format!("http://{CLUSTER}{}", self.path))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(curl)
    }
}

/// The error that curl reports; empty if curl succeeded or was killed.
fn said(curl: Child) -> Result<String> {
    let output = curl.wait_with_output().context("cannot wait for curl")?;
    match output.status.code() {
        Some(0) | None => Ok(String::new()),
        Some(code) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            Ok(format!("curl ended with {code}: {}", errors.trim()))
        }
    }
}

/// Fills the buffer as far as there are bytes, and returns their number.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

fn a_minute() -> Span {
    seconds(60)
}

fn one() -> usize {
    1
}
