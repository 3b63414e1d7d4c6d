//! A step whose connections are handed over from one data server to the next.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpStream;
use std::thread::{self, ScopedJoinHandle};

use anyhow::{Context as _, Result, anyhow, ensure};
use serde::Deserialize;

use super::http::{connect, read_response};
use crate::step::Step;
use crate::world::World;

/// Opens connections that stay open, and sends requests over each that move it from data server to data server. Each
/// request must be answered by the data server that its path names, and no connection may end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Walk {
    /// The paths, which are asked for in turn. Each begins with /dsN/, and every connection starts at another one.
    paths: Vec<String>,
    connections: usize,
    /// The number of requests over each connection.
    requests: usize,
    /// Further lines of each request's head.
    #[serde(default)]
    headers: Vec<String>,
    /// The host that must answer, if not the one that the path names.
    #[serde(default)]
    answered_by: Option<String>,
    /// Hosts that may answer as well, by path.
    #[serde(default)]
    also_by: BTreeMap<String, Vec<String>>,
    /// Steps in the middle, while the connections are open and no request is under way. After them, all requests are
    /// sent again.
    #[serde(default)]
    meanwhile: Vec<Step>,
}

impl Walk {
    /// Runs the step.
    ///
    /// # Errors
    /// A connection ended, or another data server than expected has answered.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let open = (0..self.connections).map(|_| connect(None, 80));
        let streams = world.lab.within("client", || open.collect::<Result<_>>())?;
        let streams = self.all_walk(streams?)?;
        if self.meanwhile.is_empty() {
            return Ok(());
        }
        self.meanwhile.iter().try_for_each(|step| {
            step.run(world)
                .with_context(|| format!("meanwhile, {step}"))
        })?;
        self.all_walk(streams)
            .map(drop)
            .context("after what was meanwhile")
    }

    fn all_walk(&self, streams: Vec<TcpStream>) -> Result<Vec<TcpStream>> {
        thread::scope(|scope| {
            let streams = streams.into_iter().enumerate();
            let walkers: Vec<_> = streams
                .map(|(number, stream)| scope.spawn(move || self.walk(number, stream)))
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

    fn walk(&self, number: usize, mut stream: TcpStream) -> Result<TcpStream> {
        for turn in 0..self.requests {
            let path = &self.paths[(number + turn) % self.paths.len()];
            let answer = ask(&mut stream, &self.request(path))
                .with_context(|| format!("connection {number}, request {turn} ({path})"))?;
            let host = match &self.answered_by {
                Some(host) => host.clone(),
                None => path.split('/').nth(1).unwrap_or_default().to_owned(),
            };
            let also = self.also_by.get(path).into_iter().flatten();
            let mut hosts = also.chain([&host]);
            ensure!(
                hosts.any(|host| answer == format!("{host} {path}")),
                "connection {number}, request {turn}: {answer:?} answers {path}"
            );
        }
        Ok(stream)
    }
}

fn ask(stream: &mut TcpStream, request: &str) -> Result<String> {
    stream.write_all(request.as_bytes())?;
    let (head, body) = read_response(stream)?;
    ensure!(head.starts_with("HTTP/1.1 200 "), "the answer is {head}");
    Ok(String::from_utf8_lossy(&body).trim().to_owned())
}
