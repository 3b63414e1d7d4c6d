//! A step whose connections are handed over from one data server to the next.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpStream;
use std::thread::{self, ScopedJoinHandle};

use anyhow::{Context as _, Result, anyhow, ensure};
use serde::Deserialize;

use super::get::lab_file;
use super::http::{connect, read_response, served_by};
use crate::step::{Step, meanwhile};
use crate::world::World;

/// Opens connections that stay open, and sends requests over each that move it from data server to data server. Each
/// request must be answered by the data server that its path names, and no connection may end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Walk {
    /// The paths, which are asked for in turn. Each begins with /dsN/, and every connection starts at another one. If a
    /// path names one of the lab's files, every byte of it must be right.
    paths: Vec<String>,
    connections: usize,
    /// The number of requests over each connection.
    requests: usize,
    /// Further lines of each request's head.
    #[serde(default)]
    headers: Vec<String>,
    /// Hosts that may answer as well, by path.
    #[serde(default)]
    also_by: BTreeMap<String, Vec<String>>,
    /// Steps in the middle, while the connections are open and no request is under way. After them, all requests are
    /// sent again.
    #[serde(default)]
    meanwhile: Vec<Step>,
}

/// The lab's files that are asked for, by path.
type Files = BTreeMap<String, Vec<u8>>;

impl Walk {
    /// Runs the step.
    ///
    /// # Errors
    /// A connection ended, or another data server than expected has answered.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let files = self.files()?;
        let open = (0..self.connections).map(|_| connect(None, 80));
        let streams = world.lab.within("client", || open.collect::<Result<_>>())?;
        let streams = self.all_walk(streams?, &files)?;
        if self.meanwhile.is_empty() {
            return Ok(());
        }
        meanwhile(&self.meanwhile, world)?;
        self.all_walk(streams, &files)
            .map(drop)
            .context("after what was meanwhile")
    }

    fn files(&self) -> Result<Files> {
        let files = self.paths.iter().filter_map(|path| {
            let file = lab_file(path).ok()?;
            Some((path, file))
        });
        files
            .map(|(path, file)| Ok((path.clone(), std::fs::read(file)?)))
            .collect()
    }

    fn all_walk(&self, streams: Vec<TcpStream>, files: &Files) -> Result<Vec<TcpStream>> {
        thread::scope(|scope| {
            let streams = streams.into_iter().enumerate();
            let walkers: Vec<_> = streams
                .map(|(number, stream)| scope.spawn(move || self.walk(number, stream, files)))
                .collect();
            let join = |walker: ScopedJoinHandle<_>| {
                let walked = walker.join();
                walked.map_err(|_| anyhow!("a walker panicked"))?
            };
            walkers.into_iter().map(join).collect()
        })
    }

    fn request(&self, path: &str) -> String {
        let further: String = (self.headers.iter())
            .map(|line| format!("{line}\r\n"))
            .collect();
        format!("GET {path} HTTP/1.1\r\nHost: cluster\r\n{further}\r\n")
    }

    fn walk(&self, number: usize, mut stream: TcpStream, files: &Files) -> Result<TcpStream> {
        for turn in 0..self.requests {
            let path = &self.paths[(number + turn) % self.paths.len()];
            self.ask(&mut stream, path, files.get(path))
                .with_context(|| format!("connection {number}, request {turn} ({path})"))?;
        }
        Ok(stream)
    }

    /// Asks for a path. `file` is the lab's file that it names; any other path is answered with the name of the data
    /// server and the path itself.
    fn ask(&self, stream: &mut TcpStream, path: &str, file: Option<&Vec<u8>>) -> Result<()> {
        stream.write_all(self.request(path).as_bytes())?;
        let (head, body) = read_response(stream)?;
        ensure!(head.starts_with("HTTP/1.1 200 "), "the answer is {head}");
        let by = served_by(&head).context("the answer does not say whose it is")?;
        let named = path.split('/').nth(1).unwrap_or_default();
        let mut others = self.also_by.get(path).into_iter().flatten();
        ensure!(
            by == named || others.any(|other| other == by),
            "{by} answers"
        );
        match file {
            Some(file) => ensure!(
                body == *file,
                "{} bytes of {by} are not the file's {}",
                body.len(),
                file.len()
            ),
            None => {
                let text = String::from_utf8_lossy(&body);
                ensure!(
                    text.trim() == format!("{by} {path}"),
                    "{by} answers {text:?}"
                );
            }
        }
        Ok(())
    }
}
