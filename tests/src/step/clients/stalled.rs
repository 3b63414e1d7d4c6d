//! A step with very many clients at once, of which some read nothing of a long answer.

use std::io::Read as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::Deserialize;

use super::http::{connect, get, read_head, read_response};
use super::page::Page;
use crate::world::World;

/// Opens so many connections, of which one in ten asks for a large page and reads nothing of the answer. When no more
/// bytes arrive there, all others ask at the same time, again and again, and every byte that they get is compared with
/// the right one. At the end the stalled ones read on, and what they get must be right, too.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stalled {
    connections: usize,
    /// The paths of the lab's files that the others ask for in turn.
    paths: Vec<String>,
    /// The number of requests over each of the others.
    requests: usize,
}

const ONE_IN: usize = 10;
/// The page that the stalled ones ask for. It is larger than all that can be on its way.
const LARGE: &str = "/64m";
/// The number of bytes that each stalled connection reads at the end.
const READ_ON: usize = 1 << 20;
/// The number of threads. Each sends the requests of all its connections before it reads the first answer.
const THREADS: usize = 8;
/// The time between two looks at the bytes that have come.
const LOOK: Duration = Duration::from_millis(500);
/// The longest that a read may take, and that bytes may go on arriving unread, also on a slow machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// More bytes than a receive buffer holds if nobody reads.
const MOST_UNREAD: usize = 1 << 20;
/// The number of files that this process needs besides the connections.
const OTHER_FILES: u64 = 1000;

impl Stalled {
    /// Runs the step.
    ///
    /// # Errors
    /// An answer is wrong or does not come.
    pub fn run(&self, world: &mut World) -> Result<()> {
        allow_files(self.connections as u64 + OTHER_FILES)?;
        let large = Page::new(LARGE)?;
        let pages: Vec<Page> = (self.paths.iter())
            .map(|path| Page::new(path))
            .collect::<Result<_>>()?;
        let all = world
            .lab
            .within("client", || open(self.connections))??
            .into_iter()
            .enumerate();
        // The place of the stalled one moves on by one in each ten, so that a connection server that chooses data
        // servers in turn gives a stalled connection to each of them.
        let (stalled, others): (Vec<_>, Vec<_>) =
            all.partition(|(number, _)| number % ONE_IN == number / ONE_IN % ONE_IN);
        let mut stalled: Vec<TcpStream> = stalled.into_iter().map(|(_, stream)| stream).collect();
        let mut others: Vec<TcpStream> = others.into_iter().map(|(_, stream)| stream).collect();
        (stalled.iter_mut()).try_for_each(|stream| get(stream, &large.path))?;
        until_still(&stalled)?;
        self.ask_all(&mut others, &pages)?;
        // A connection that is done is closed, which makes room for the answer of the next one.
        for (number, stream) in stalled.into_iter().enumerate() {
            read_on(stream, &large.body)
                .with_context(|| format!("number {number} of those that stood still"))?;
        }
        Ok(())
    }

    fn ask_all(&self, streams: &mut [TcpStream], pages: &[Page]) -> Result<()> {
        let each = streams.len().div_ceil(THREADS).max(1);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (streams.chunks_mut(each).enumerate())
                .map(|(thread, streams)| {
                    scope.spawn(move || {
                        (0..self.requests).try_for_each(|round| {
                            ask(streams, pages, round).with_context(|| {
                                format!("thread {thread}, request {} of each", round + 1)
                            })
                        })
                    })
                })
                .collect();
            threads.into_iter().try_for_each(|thread| {
                let asked = thread.join();
                asked.unwrap_or_else(|_| Err(anyhow::anyhow!("a thread of the clients panicked")))
            })
        })
    }
}

fn open(connections: usize) -> Result<Vec<TcpStream>> {
    (0..connections)
        .map(|number| {
            let stream = connect(None, 80).with_context(|| format!("connection {number}"))?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok(stream)
        })
        .collect()
}

/// Sends a request over each connection, then reads all answers.
fn ask(streams: &mut [TcpStream], pages: &[Page], round: usize) -> Result<()> {
    let page = |number: usize| &pages[(number + round) % pages.len()];
    for (number, stream) in streams.iter_mut().enumerate() {
        get(stream, &page(number).path)?;
    }
    for (number, stream) in streams.iter_mut().enumerate() {
        let page = page(number);
        let answer = read_response(stream);
        let (head, body) = answer.with_context(|| format!("connection {number} of its own"))?;
        ensure!(head.starts_with("HTTP/1.1 200 "), "the answer is {head}");
        ensure!(body == page.body, "{} has wrong bytes", page.path);
    }
    Ok(())
}

/// Waits until each connection has got something and none gets more.
fn until_still(streams: &[TcpStream]) -> Result<()> {
    let begun = Instant::now();
    let mut seen = vec![0; MOST_UNREAD];
    let mut before = Vec::new();
    loop {
        let now: Vec<usize> = (streams.iter())
            .map(|stream| stream.peek(&mut seen))
            .collect::<Result<_, _>>()?;
        if now == before {
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "what nobody reads still grows");
        before = now;
        std::thread::sleep(LOOK);
    }
}

fn read_on(mut stream: TcpStream, content: &[u8]) -> Result<()> {
    let head = String::from_utf8(read_head(&mut stream)?)?;
    ensure!(head.starts_with("HTTP/1.1 200 "), "the answer is {head}");
    let mut body = vec![0; READ_ON.min(content.len())];
    stream.read_exact(&mut body)?;
    ensure!(body == content[..body.len()], "wrong bytes");
    Ok(())
}

/// Raises the number of files that this process may open; by default it is often lower.
fn allow_files(wanted: u64) -> Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    ensure!(
        hard >= wanted,
        "{wanted} open files are needed and {hard} allowed: raise `ulimit -Hn`"
    );
    setrlimit(Resource::RLIMIT_NOFILE, soft.max(wanted), hard)?;
    Ok(())
}
