//! Measures how long one request takes when nothing else is under way: 4 KB over connections that stay open, one
//! request after the other. The competitors take turns request by request, so that all meet the same machine. Each has
//! as many connections as there are servers, and uses them in turn.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::competitor::{Competitor, Each};
use crate::https_client;
use crate::lab::BenchLab;
use crate::options::Options;
use crate::statistics::percentile;
use crate::wrk::Target;

const SERVERS: usize = 3;
/// The number of requests of each connection that are not counted.
pub(crate) const WARM_UP: u32 = 50;
const PATIENCE: Duration = Duration::from_secs(10);

/// The times of single requests, sorted.
pub(crate) type Times = Each<Vec<Duration>>;

/// Measures on a thread inside the client.
pub(crate) fn measure(lab: &BenchLab, options: &Options) -> Result<Times> {
    eprintln!("latency: {} requests each", options.requests);
    lab.running()?
        .within("client", || requests(options.requests))?
}

fn requests(count: u32) -> Result<Times> {
    let mut clients = Each::try_new(|competitor| {
        let addresses = competitor.addresses();
        (0..SERVERS)
            .map(|index| addresses[index % addresses.len()])
            .map(|address| Client::connect(competitor.name(), (address, 80)))
            .collect::<Result<Vec<_>>>()
    })?;
    let mut times = Times::default();
    for number in 0..WARM_UP * SERVERS as u32 + count {
        for competitor in Competitor::ALL {
            let client = &mut clients.of_mut(competitor)[number as usize % SERVERS];
            let time = client.request("/4k")?;
            if number >= WARM_UP * SERVERS as u32 {
                times.of_mut(competitor).push(time);
            }
        }
    }
    for competitor in Competitor::ALL {
        times.of_mut(competitor).sort();
    }
    Ok(times)
}

/// A connection, with TLS or without.
trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// A connection of a client.
pub(crate) struct Client {
    name: &'static str,
    host: &'static str,
    stream: Box<dyn Stream>,
    buffer: Vec<u8>,
}

impl Client {
    /// Connects. Error messages call the connection by `name`.
    pub fn connect(name: &'static str, to: (&'static str, u16)) -> Result<Client> {
        Ok(Client::over(name, to.0, Box::new(connect(name, to)?)))
    }

    /// Connects to one of the target's addresses, which are taken in turn, as its clients do.
    pub fn connect_to(name: &'static str, target: Target, turn: usize) -> Result<Client> {
        let to = target.address(turn);
        let Some(server) = target.server() else {
            return Client::connect(name, to);
        };
        let stream = https_client::begin(connect(name, to)?, server);
        let stream = stream.with_context(|| format!("begin a TLS session with {name}"))?;
        Ok(Client::over(name, server, Box::new(stream)))
    }

    fn over(name: &'static str, host: &'static str, stream: Box<dyn Stream>) -> Client {
        Client {
            name,
            host,
            stream,
            buffer: vec![0; 64 << 10],
        }
    }

    /// Sends a request and returns the time from before its first byte until the last byte of the answer has come.
    pub fn request(&mut self, page: &str) -> Result<Duration> {
        let request = format!("GET {page} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host);
        let doing = || format!("ask {} for {page}", self.name);
        let start = Instant::now();
        self.stream
            .write_all(request.as_bytes())
            .with_context(doing)?;
        let mut filled = 0;
        let mut whole = None;
        while whole.is_none_or(|whole| filled < whole) {
            match self
                .stream
                .read(&mut self.buffer[filled..])
                .with_context(doing)?
            {
                0 => bail!("{} closed in the middle of an answer", self.name),
                bytes => filled += bytes,
            }
            if whole.is_none() {
                whole = answer_bytes(&self.buffer[..filled]).with_context(doing)?;
            }
        }
        Ok(start.elapsed())
    }
}

fn connect(name: &str, to: (&str, u16)) -> Result<TcpStream> {
    let connect = || -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect(to)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    };
    connect().with_context(|| format!("connect to {name}"))
}

/// The number of bytes of head and body together; `None` until the head is complete.
fn answer_bytes(bytes: &[u8]) -> Result<Option<usize>> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(header) = response.parse(bytes)? else {
        return Ok(None);
    };
    if response.code != Some(200) {
        bail!("status {:?}, not 200", response.code);
    }
    let length = response
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("content-length"))
        .context("an answer without Content-Length")?;
    let length: usize = std::str::from_utf8(length.value)?.parse()?;
    Ok(Some(header + length))
}

/// A table of percentiles.
pub(crate) fn markdown(times: &Times) -> String {
    let mut text = format!(
        "## Latency of one request at a time, 4 KB, µs ({} requests each)\n\n\
         | | p50 | p90 | p99 |\n|---|--:|--:|--:|\n",
        times.baton.len()
    );
    for competitor in Competitor::ALL {
        let (name, times) = (competitor.name(), times.of(competitor));
        text += &format!("| {name} | {} |\n", percentiles(times));
    }
    text
}

/// Three cells of a table: p50, p90 and p99 of sorted times, in microseconds.
pub(crate) fn percentiles(times: &[Duration]) -> String {
    let at = |part| match percentile(times, part) {
        Some(time) => format!("{:.1}", time.as_secs_f64() * 1e6),
        None => "–".to_owned(),
    };
    [0.5, 0.9, 0.99].map(at).join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_header_and_body() -> Result<()> {
        let text = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
        assert_eq!(answer_bytes(text)?, Some(text.len()));
        assert_eq!(answer_bytes(&text[..20])?, None);
        assert!(answer_bytes(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n").is_err());
        assert!(answer_bytes(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        Ok(())
    }
}
