//! A step that sends a recorded first segment again.

use std::io::Write as _;
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::replay::{record, stop, wait_for};
use crate::frames::{self, Frame, TCP_AT};
use crate::span::Span;
use crate::step::clients::get::lab_file;
use crate::step::clients::http::connect;
use crate::world::World;

/// Records the segment with which a client asks for a page, and sends it again in the middle of the response and after
/// the connection has ended. Each byte of the page must be right. If there is a body, the request is a POST.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayFirst {
    /// A page of the lab that is long enough to have a middle.
    path: String,
    times: usize,
    /// The body of the request, in the same segment.
    body: Option<String>,
    /// The times after the connection's end at which the segment is sent again, in order.
    after: Vec<Span>,
}

/// An offset in the page that is farther on than any late packet can be behind, in bytes.
const MIDDLE: usize = 8 * 1024 * 1024;

impl ReplayFirst {
    /// Runs the step.
    ///
    /// # Errors
    /// The response is not the page, or the connection failed.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let page = std::fs::read(lab_file(&self.path)?)?;
        ensure!(page.len() > 2 * MIDDLE, "{} is too short", self.path);
        let file = world.scratch.path().join("first.pcap");
        let which = "tcp dst port 80 and tcp[13] & 8 != 0"; // PSH
        let recorder = record(world, "client", &file, which)?;
        let asked = world.lab.within("client", || self.ask());
        let found = asked?.and_then(|stream| {
            let port = stream.local_addr()?.port();
            Ok((stream, wait_for(&file, TCP_AT, port)?))
        });
        stop(recorder)?;
        let (mut stream, frame) = found?;
        let mut whole = Vec::new();
        read_until(&mut stream, &mut whole, MIDDLE)?;
        let replay =
            |frame: &Frame| frames::send(world, "client", &vec![frame.clone(); self.times]);
        replay(&frame)?;
        read_until(&mut stream, &mut whole, 0).context("after the replay")?;
        ensure!(
            whole.ends_with(&page),
            "the response is not the page: {} bytes of {}",
            whole.len(),
            page.len()
        );
        drop(stream);
        let ended = Instant::now();
        self.after.iter().try_for_each(|after| {
            sleep(after.0.saturating_sub(ended.elapsed()));
            replay(&frame)
        })
    }

    fn ask(&self) -> Result<TcpStream> {
        let mut stream = connect(None, 80)?;
        let head = "HTTP/1.1\r\nHost: cluster\r\nConnection: close\r\n";
        let request = match &self.body {
            None => format!("GET {} {head}\r\n", self.path),
            Some(body) => {
                let length = body.len();
                format!(
                    "POST {} {head}Content-Length: {length}\r\n\r\n{body}",
                    self.path
                )
            }
        };
        stream.write_all(request.as_bytes())?;
        Ok(stream)
    }
}

/// Reads until `whole` has so many bytes; 0 means until the connection's end.
fn read_until(stream: &mut TcpStream, whole: &mut Vec<u8>, bytes: usize) -> Result<()> {
    use std::io::Read as _;
    let mut piece = vec![0; 1 << 16];
    while bytes == 0 || whole.len() < bytes {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => whole.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
