//! How long one request takes when nothing else is under way: 4 KB over connections that stay, one
//! request after the other. The competitors take turns request by request, so that all meet the same
//! machine; each has as many connections as there are servers, used in turn.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::competitor::{Competitor, Each};
use crate::lab::BenchLab;
use crate::options::Options;
use crate::statistics::percentile;

const SERVERS: usize = 3;
/// Requests of each connection that are not counted.
pub(crate) const WARM_UP: u32 = 50;
const PATIENCE: Duration = Duration::from_secs(10);

/// Times of single requests, sorted.
pub(crate) type Times = Each<Vec<Duration>>;

/// Measures on a thread inside the client.
pub(crate) fn measure(lab: &BenchLab, options: &Options) -> Result<Times> {
    eprintln!("latency: {} requests each", options.requests);
    lab.running()?
        .within("client", || requests(options.requests))?
}

fn requests(count: u32) -> Result<Times> {
    let mut clients = Each::try_new(|competitor| {
        (0..SERVERS)
            .map(|index| Client::of(competitor, index))
            .collect::<Result<Vec<_>>>()
    })?;
    let mut times = Times::default();
    for number in 0..WARM_UP * SERVERS as u32 + count {
        for competitor in Competitor::ALL {
            let client = &mut clients.of_mut(competitor)[number as usize % SERVERS];
            let time = client.request()?;
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

/// One connection, and what it asks for.
pub(crate) struct Client {
    name: &'static str,
    stream: TcpStream,
    request: String,
    buffer: Vec<u8>,
}

impl Client {
    fn of(competitor: Competitor, index: usize) -> Result<Client> {
        let addresses = competitor.addresses();
        let address = addresses[index % addresses.len()];
        Client::connect(competitor.name(), address, "/4k")
    }

    /// To this address, for this page.
    pub fn connect(name: &'static str, address: &str, page: &str) -> Result<Client> {
        let connect = || -> std::io::Result<TcpStream> {
            let stream = TcpStream::connect((address, 80))?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok(stream)
        };
        Ok(Client {
            name,
            stream: connect().with_context(|| format!("connect to {name}"))?,
            request: format!("GET {page} HTTP/1.1\r\nHost: {address}\r\n\r\n"),
            buffer: vec![0; 64 << 10],
        })
    }

    /// From before the first byte is sent until the last has come.
    pub fn request(&mut self) -> Result<Duration> {
        let doing = || format!("ask {}", self.name);
        let start = Instant::now();
        self.stream
            .write_all(self.request.as_bytes())
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

/// Header and body together, once the header is whole.
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

/// Percentiles.
pub(crate) fn markdown(times: &Times) -> String {
    let mut text = format!(
        "## Latency of one request at a time, 4 KB, µs ({} requests each)\n\n\
         | | p50 | p90 | p99 |\n|---|--:|--:|--:|\n",
        times.baton.len()
    );
    for competitor in Competitor::ALL {
        text += &row(competitor.name(), times.of(competitor));
    }
    text
}

/// A line of such a table; the times are sorted.
pub(crate) fn row(name: &str, times: &[Duration]) -> String {
    let at = |part| match percentile(times, part) {
        Some(time) => format!("{:.1}", time.as_secs_f64() * 1e6),
        None => "–".to_owned(),
    };
    format!("| {name} | {} | {} | {} |\n", at(0.5), at(0.9), at(0.99))
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
