//! Steps with clients for which there is no ready-made program.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::get::{fields, once};
use super::http::{connect, connect_to, is_by_pool, read_response, whoami};
use crate::span::Span;
use crate::world::World;

/// Sends requests over one connection, the head of each in segments of one byte or a few.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trickle {
    path: String,
    /// The time between two segments.
    every: Span,
    /// The number of bytes in a segment.
    #[serde(default = "once")]
    segment: usize,
    /// The number of connections, one after the other.
    #[serde(default = "once")]
    times: usize,
    /// The number of requests over each connection.
    #[serde(default = "once")]
    requests: usize,
    /// The length of the body, in bytes.
    bytes: usize,
    /// The number of bytes of further fields in the head.
    #[serde(default)]
    header_bytes: usize,
    /// Whether each request must be answered by the data server that the path names. The path then begins with /dsN/.
    #[serde(default)]
    by_pool: bool,
}

/// Opens a WebSocket whose server echoes. Between its messages, other connections go to other data servers, and the
/// WebSocket must stay with its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Websocket {
    messages: usize,
    /// The number of bytes of each message, below 126.
    bytes: u8,
    /// The data server that the WebSocket must be with, if not all data servers offer it: a connection that this data
    /// server has got is upgraded.
    server: Option<String>,
}

/// Connects to a server that speaks first, then echoes lines.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Banner {
    port: u16,
    /// How the server's first line must begin.
    greeting: String,
    times: usize,
}

impl Trickle {
    /// Runs the step.
    ///
    /// # Errors
    /// A request failed.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let more: String = fields(self.header_bytes)
            .iter()
            .map(|field| format!("{field}\r\n"))
            .collect();
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: cluster\r\nUser-Agent: trickle\r\n{more}\r\n",
            self.path
        );
        world.lab.within("client", || {
            for _ in 0..self.times {
                let mut stream = connect(None, 80)?;
                for _ in 0..self.requests {
                    self.send(&mut stream, request.as_bytes())?;
                    let (head, body) =
                        read_response(&mut stream).context("no whole answer came")?;
                    ensure!(head.starts_with("HTTP/1.1 200 "), "the answer is {head}");
                    ensure!(body.len() == self.bytes, "{} bytes came", body.len());
                    ensure!(
                        !self.by_pool || is_by_pool(&self.path, &head),
                        "{} is answered by another pool: {head}",
                        self.path
                    );
                }
            }
            Ok(())
        })?
    }

    fn send(&self, stream: &mut TcpStream, request: &[u8]) -> Result<()> {
        for segment in request.chunks(self.segment) {
            stream.write_all(segment)?;
            if self.every.0 > Duration::ZERO {
                std::thread::sleep(self.every.0);
            }
        }
        Ok(())
    }
}

impl Websocket {
    /// Runs the step.
    ///
    /// # Errors
    /// The upgrade was refused, or an echo was wrong.
    pub fn run(&self, world: &mut World) -> Result<()> {
        world.lab.within("client", || self.talk())?
    }

    fn talk(&self) -> Result<()> {
        ensure!(
            self.bytes < 126,
            "a message of 126 bytes or more has a longer header"
        );
        let mut stream = match &self.server {
            Some(server) => connect_to(server)?,
            None => connect(None, 80)?,
        };
        stream.write_all(
            b"GET /echo HTTP/1.1\r\nHost: cluster\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
              Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        )?;
        let (head, _) = read_response(&mut stream)?;
        ensure!(head.starts_with("HTTP/1.1 101 "), "the answer is {head}");
        // The answer that RFC 6455, section 1.3 gives for the key of the request.
        ensure!(
            head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
            "the answer is {head}"
        );
        for number in 0..self.messages {
            whoami(None)?;
            let body: Vec<u8> = (0..self.bytes).map(|at| at ^ number as u8).collect();
            self.echo(&mut stream, &body)
                .with_context(|| format!("message {}", number + 1))?;
        }
        Ok(())
    }

    /// Sends a message and checks the echo. A client's frames are masked, a server's are not (RFC 6455, section 5.2).
    fn echo(&self, stream: &mut TcpStream, body: &[u8]) -> Result<()> {
        const BINARY: u8 = 0x82;
        const MASK: [u8; 4] = [0x5a, 0xc3, 0x0f, 0x99];
        let mut frame = vec![BINARY, 0x80 | self.bytes];
        frame.extend(MASK);
        frame.extend(
            body.iter()
                .zip(MASK.iter().cycle())
                .map(|(byte, mask)| byte ^ mask),
        );
        stream.write_all(&frame)?;
        let mut answer = vec![0; 2 + body.len()];
        stream.read_exact(&mut answer)?;
        ensure!(
            answer[..2] == [BINARY, self.bytes] && answer[2..] == *body,
            "the echo is {answer:?}"
        );
        Ok(())
    }
}

impl Banner {
    /// Runs the step.
    ///
    /// # Errors
    /// The server did not speak first, or said something wrong.
    pub fn run(&self, world: &mut World) -> Result<()> {
        world.lab.within("client", || {
            for _ in 0..self.times {
                let mut stream = connect(None, self.port)?;
                let greeting = line(&mut stream).context("the server did not speak first")?;
                ensure!(
                    greeting.starts_with(&self.greeting),
                    "the server said {greeting:?}"
                );
                stream.write_all(b"hello\n")?;
                let echo = line(&mut stream)?;
                ensure!(echo == "hello\n", "the server answered {echo:?}");
            }
            Ok(())
        })?
    }
}

fn line(stream: &mut TcpStream) -> Result<String> {
    let mut text = Vec::new();
    let mut byte = [0];
    while text.last() != Some(&b'\n') {
        stream.read_exact(&mut byte)?;
        text.push(byte[0]);
    }
    Ok(String::from_utf8(text)?)
}
