//! A step that sends requests of all kinds, each of which must be answered by the data server that the rules name.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use anyhow::{Context as _, Result, anyhow, ensure};
use serde::Deserialize;

use super::get::once;
use super::http::{connect, read_response};
use crate::world::World;

/// Opens connections that stay open, and sends all these requests over each, one after the other.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    requests: Vec<Request>,
    /// The number of connections; each starts at another request.
    #[serde(default = "once")]
    connections: usize,
    /// How often each connection goes through all the requests.
    #[serde(default = "once")]
    times: usize,
    /// Whether each request gets a connection of its own.
    #[serde(default)]
    close: bool,
    /// How many of all requests may be answered by other data servers, for rules whose dispatcher may answer too late.
    #[serde(default)]
    others_at_most: usize,
}

/// One request, and the data server that must answer it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// The method and the target.
    line: String,
    /// Further lines of the request's head.
    #[serde(default)]
    headers: Vec<String>,
    /// The request's body, which is sent in a segment of its own.
    #[serde(default)]
    body: String,
    by: String,
}

impl Ask {
    /// Runs the step.
    ///
    /// # Errors
    /// A connection ended, or another data server than expected has answered.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let others = AtomicUsize::new(0);
        let others = &others;
        world.lab.within("client", || {
            thread::scope(|scope| {
                let clients: Vec<_> = (0..self.connections)
                    .map(|number| scope.spawn(move || self.connection(number, others)))
                    .collect();
                clients.into_iter().try_for_each(|client| {
                    let asked = client.join();
                    asked.map_err(|_| anyhow!("a client panicked"))?
                })
            })
        })?
    }

    fn connection(&self, number: usize, others: &AtomicUsize) -> Result<()> {
        let mut stream = connect(None, 80)?;
        for turn in 0..self.times * self.requests.len() {
            if self.close && turn > 0 {
                stream = connect(None, 80)?;
            }
            let request = &self.requests[(number + turn) % self.requests.len()];
            let by = || format!("connection {number}, request {turn}: {request:?}");
            let answer = request.ask(&mut stream).with_context(by)?;
            let is_theirs = answer == request.answer_by(&request.by);
            let is_to_it = answer.ends_with(&request.answer_by(""));
            ensure!(is_to_it, "{}: the answer is {answer:?}", by());
            let is_one_too_many = !is_theirs && others.fetch_add(1, Relaxed) >= self.others_at_most;
            ensure!(!is_one_too_many, "{}: the answer is {answer:?}", by());
        }
        Ok(())
    }
}

impl Request {
    /// The body of this data server's answer to the request.
    fn answer_by(&self, server: &str) -> String {
        let target = self.line.split(' ').nth(1).unwrap_or_default();
        format!("{server} {target}")
    }

    /// Sends the request and returns the body of the answer.
    fn ask(&self, stream: &mut TcpStream) -> Result<String> {
        let mut head = format!("{} HTTP/1.1\r\nHost: cluster\r\n", self.line);
        for line in &self.headers {
            head += &format!("{line}\r\n");
        }
        if !self.body.is_empty() {
            head += &format!("Content-Length: {}\r\n", self.body.len());
        }
        stream.write_all(format!("{head}\r\n").as_bytes())?;
        stream.write_all(self.body.as_bytes())?;
        let (head, body) = read_response(stream)?;
        ensure!(head.starts_with("HTTP/1.1 200 "), "the answer is {head}");
        Ok(String::from_utf8_lossy(&body).trim().to_owned())
    }
}
