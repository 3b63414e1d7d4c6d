//! A step with many clients, each in the middle of a long response that it reads slowly, while other steps happen.

use std::io::{ErrorKind, Read as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use super::http::{connect, get};
use super::page::Page;
use crate::step::{Step, meanwhile};
use crate::world::World;

/// Opens so many connections that read a file, each at this rate at most. Every byte that comes is compared with the
/// right one. When all have begun, other steps happen. After these, each connection must get more bytes before it is
/// closed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Readers {
    count: usize,
    path: String,
    /// The rate of each connection, in bytes a second.
    rate: usize,
    meanwhile: Vec<Step>,
}

/// The time between two looks at a connection.
const PASS: Duration = Duration::from_millis(500);
/// The number of bytes that a client and its server may hold at most of what was sent before.
const ON_ITS_WAY: usize = 256 * 1024;
const LONGEST: Duration = Duration::from_secs(120);

struct Reader {
    stream: TcpStream,
    head: Vec<u8>,
    /// The number of bytes of the body so far; `None` until the head is complete.
    bytes: Option<usize>,
}

impl Readers {
    /// Runs the step.
    ///
    /// # Errors
    /// A byte is wrong, a connection ends, a connection gets no more bytes, or a step failed.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let content = Arc::new(Page::new(&self.path)?.body);
        let readers = world.lab.within("client", || {
            let one = || Reader::open(&self.path);
            (0..self.count).map(|_| one()).collect::<Result<Vec<_>>>()
        })??;
        let ended = Arc::new(AtomicBool::new(false));
        let (end, rate) = (Arc::clone(&ended), self.rate);
        let thread = std::thread::spawn(move || follow(readers, &content, rate, &end));
        std::thread::sleep(4 * PASS);
        let steps = meanwhile(&self.meanwhile, world);
        ended.store(true, Ordering::Relaxed);
        let Ok(followed) = thread.join() else {
            bail!("the thread of the readers panicked");
        };
        followed?;
        steps
    }
}

impl Reader {
    fn open(path: &str) -> Result<Self> {
        let mut stream = connect(None, 80)?;
        get(&mut stream, path)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            head: Vec::new(),
            bytes: None,
        })
    }

    /// Reads the bytes that are there, at most `most`.
    fn read(&mut self, most: usize, content: &[u8]) -> Result<()> {
        let mut buffer = vec![0; most];
        let read = match self.stream.read(&mut buffer) {
            Ok(0) => bail!("it was closed after {:?} bytes", self.bytes),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => bail!("{error} after {:?} bytes", self.bytes),
        };
        let mut new = buffer[..read].to_vec();
        if self.bytes.is_none() {
            self.head.append(&mut new);
            let Some(end) = self.head.windows(4).position(|four| four == b"\r\n\r\n") else {
                return Ok(());
            };
            ensure!(self.head.starts_with(b"HTTP/1.1 200 "), "it is no 200");
            new = self.head.split_off(end + 4);
            self.bytes = Some(0);
        }
        let bytes = self.bytes.unwrap_or_default();
        ensure!(
            content.get(bytes..bytes + new.len()) == Some(&new[..]),
            "a wrong byte among the {} after the first {bytes}",
            new.len()
        );
        self.bytes = Some(bytes + new.len());
        Ok(())
    }
}

/// Reads at the rate until `ended` is set, and then faster, until each connection has got more than was on its way
/// then.
fn follow(mut readers: Vec<Reader>, content: &[u8], rate: usize, ended: &AtomicBool) -> Result<()> {
    let most = rate * PASS.as_millis() as usize / 1000;
    let pass = |readers: &mut Vec<Reader>, most: usize| {
        let begun = Instant::now();
        for (number, reader) in readers.iter_mut().enumerate() {
            reader
                .read(most, content)
                .with_context(|| format!("connection {number}"))?;
        }
        std::thread::sleep(PASS.saturating_sub(begun.elapsed()));
        Ok::<_, anyhow::Error>(())
    };
    while !ended.load(Ordering::Relaxed) {
        pass(&mut readers, most)?;
    }
    let bytes = |reader: &Reader| reader.bytes.unwrap_or_default();
    let goals: Vec<usize> = readers
        .iter()
        .map(|reader| (bytes(reader) + ON_ITS_WAY).min(content.len()))
        .collect();
    finish(readers, goals, content)
}

/// Reads until each connection has reached its goal. A connection that has reached it is closed, to make room for the
/// others.
fn finish(mut readers: Vec<Reader>, mut goals: Vec<usize>, content: &[u8]) -> Result<()> {
    let begun = Instant::now();
    while !readers.is_empty() {
        ensure!(
            begun.elapsed() < LONGEST,
            "{} connections get nothing any more",
            readers.len()
        );
        for (number, reader) in readers.iter_mut().enumerate() {
            reader
                .read(ON_ITS_WAY, content)
                .with_context(|| format!("connection {number} of those left"))?;
        }
        let enough: Vec<bool> = readers
            .iter()
            .zip(&goals)
            .map(|(reader, goal)| reader.bytes.unwrap_or_default() >= *goal)
            .collect();
        let mut kept = enough.iter();
        readers.retain(|_| kept.next() == Some(&false));
        let mut kept = enough.iter();
        goals.retain(|_| kept.next() == Some(&false));
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
