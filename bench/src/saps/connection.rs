//! One client's HTTP connection, which asks for a number of bytes and reads them as fast as they come.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

/// The largest page. Requests ask for parts of it.
const PAGE: &str = "/256m";
/// How long a server may be silent. The paper's client gave up after a minute (section 4.3.1); all times here are a
/// tenth of the paper's.
pub(super) const PATIENCE: Duration = Duration::from_secs(6);
/// How often a waiting client checks whether it is time to leave.
const LOOK: Duration = Duration::from_millis(200);

pub(super) struct Connection {
    stream: TcpStream,
    address: &'static str,
    buffer: Vec<u8>,
}

/// The way in which a successful request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fetched {
    /// All bytes have come. `by` is the server that X-Served-By names.
    Whole { by: String },
    /// It was time to leave, after this many bytes of the body.
    Left { bytes: u64 },
}

impl Connection {
    pub fn connect(address: &'static str) -> Result<Connection> {
        let to = SocketAddr::new(address.parse()?, 80);
        let connect = || {
            let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(LOOK))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok::<_, std::io::Error>(stream)
        };
        Ok(Connection {
            stream: connect().with_context(|| format!("connect to {to}"))?,
            address,
            buffer: vec![0; 64 << 10],
        })
    }

    /// Asks for so many bytes. The client leaves at `until`, even if bytes are missing.
    pub fn fetch(&mut self, bytes: u64, until: Option<Instant>) -> Result<Fetched> {
        ensure!(bytes > 0, "a range has at least one byte");
        let request = format!(
            "GET {PAGE} HTTP/1.1\r\nHost: {}\r\nRange: bytes=0-{}\r\n\r\n",
            self.address,
            bytes - 1
        );
        let sent = self.stream.write_all(request.as_bytes());
        sent.with_context(|| format!("ask {}", self.address))?;
        let mut filled = 0;
        let head = loop {
            match self.read(filled, until)? {
                Some(came) => filled += came,
                None => return Ok(Fetched::Left { bytes: 0 }),
            }
            if let Some(head) = Head::of(&self.buffer[..filled])? {
                break head;
            }
        };
        ensure!(head.body == bytes, "{} bytes of {bytes}", head.body);
        let mut have = (filled - head.length) as u64;
        while have < bytes {
            match self.read(0, until)? {
                Some(came) => have += came as u64,
                None => return Ok(Fetched::Left { bytes: have }),
            }
        }
        ensure!(have == bytes, "{have} bytes of {bytes} have come");
        Ok(Fetched::Whole { by: head.by })
    }

    /// Reads into the buffer, beginning at `from`. Returns `None` if it is time to leave.
    fn read(&mut self, from: usize, until: Option<Instant>) -> Result<Option<usize>> {
        let begin = Instant::now();
        loop {
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(None);
            }
            match self.stream.read(&mut self.buffer[from..]) {
                Ok(0) => bail!("{} closed in the middle of an answer", self.address),
                Ok(bytes) => return Ok(Some(bytes)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => ensure!(
                    begin.elapsed() < PATIENCE,
                    "{} has said nothing for {} s",
                    self.address,
                    PATIENCE.as_secs()
                ),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("read an answer"),
            }
        }
    }
}

/// The head of an answer.
#[derive(Debug)]
struct Head {
    length: usize,
    body: u64,
    by: String,
}

impl Head {
    /// Reads a head; `None` until it is complete.
    fn of(bytes: &[u8]) -> Result<Option<Head>> {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(length) = response.parse(bytes)? else {
            return Ok(None);
        };
        if response.code != Some(206) {
            bail!("status {:?}, not 206", response.code);
        }
        let text = |name: &str| {
            let found = (response.headers.iter()).find(|one| one.name.eq_ignore_ascii_case(name));
            let found = found.with_context(|| format!("an answer without {name}"))?;
            Ok::<_, anyhow::Error>(std::str::from_utf8(found.value)?.to_owned())
        };
        Ok(Some(Head {
            length,
            body: text("Content-Length")?.parse()?,
            by: text("X-Served-By")?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_part_of_known_length_is_an_answer() -> Result<()> {
        let text =
            b"HTTP/1.1 206 Partial Content\r\ncontent-length: 5\r\nX-Served-By: app1\r\n\r\nhello";
        let head = Head::of(text)?.context("it is whole")?;
        assert_eq!((head.length, head.body), (text.len() - 5, 5));
        assert_eq!(head.by, "app1");
        assert!(Head::of(&text[..40])?.is_none());
        assert!(
            Head::of(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Served-By: a\r\n\r\n").is_err()
        );
        Ok(())
    }
}
