//! The part of an HTTP client that is needed where curl would be too slow or too polite.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};

use anyhow::{Context as _, Result, bail, ensure};
use socket2::{Domain, Socket, Type};

use crate::slowness::patience;
use crate::world::CLUSTER;

/// Connects to a port of the cluster address. Call this inside the client's namespace.
///
/// # Errors
/// The connection is refused.
pub fn connect(from: Option<Ipv4Addr>, port: u16) -> Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    if let Some(address) = from {
        socket.bind(&SocketAddr::V4(SocketAddrV4::new(address, 0)).into())?;
    }
    let to = SocketAddrV4::new(CLUSTER, port);
    socket
        .connect_timeout(&SocketAddr::V4(to).into(), patience())
        .with_context(|| format!("cannot connect to {to}"))?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience()))?;
    Ok(stream)
}

/// The name of the data server that answers a new connection.
///
/// # Errors
/// No data server answers.
pub fn whoami(from: Option<Ipv4Addr>) -> Result<String> {
    let mut stream = connect(from, 80)?;
    stream.write_all(b"GET /whoami HTTP/1.1\r\nHost: cluster\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .context("the answer has no end of header")?;
    ensure!(head.starts_with("HTTP/1.1 200 "), "the answer is {head}");
    Ok(body.trim().to_owned())
}

/// Makes a connection that this data server has got. The connection has already had one request and its answer.
///
/// # Errors
/// The data server gets none of twenty connections.
pub fn connect_to(server: &str) -> Result<TcpStream> {
    for _ in 0..20 {
        let mut stream = connect(None, 80)?;
        if ask(&mut stream)? == server {
            return Ok(stream);
        }
    }
    bail!("none of 20 connections came to {server}")
}

/// The name of the data server that answers on a connection.
///
/// # Errors
/// No data server answers.
pub fn ask(stream: &mut TcpStream) -> Result<String> {
    get(stream, "/whoami")?;
    let (_, body) = read_response(stream)?;
    Ok(String::from_utf8(body)?.trim().to_owned())
}

/// Reads a response's head and as much body as its Content-Length says.
///
/// # Errors
/// The connection ends before.
pub fn read_response(stream: &mut TcpStream) -> Result<(String, Vec<u8>)> {
    let head = read_head(stream)?;
    let head = String::from_utf8(head)?;
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(Ok(0), |(_, value)| value.trim().parse())?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok((head, body))
}

/// A request for a page. The connection stays open after it.
pub(crate) fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: cluster\r\n\r\n")
}

/// Sends a request for a page.
///
/// # Errors
/// The connection has ended.
pub(crate) fn get(stream: &mut TcpStream, path: &str) -> Result<()> {
    Ok(stream.write_all(request(path).as_bytes())?)
}

/// The data server that the response with this head comes from, by its own name.
pub(crate) fn served_by(head: &str) -> Option<&str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let found = fields.find(|(name, _)| name.eq_ignore_ascii_case("x-served-by"));
    found.map(|(_, by)| by.trim())
}

/// Whether the response with this head comes from the data server that the path names. The path begins with /dsN/.
pub(crate) fn is_by_pool(path: &str, head: &str) -> bool {
    served_by(head) == path.split('/').nth(1)
}

/// Reads a head up to its empty line and not a byte more, because what follows may belong to the next answer.
pub(crate) fn read_head(stream: &mut TcpStream) -> Result<Vec<u8>> {
    const END: &[u8] = b"\r\n\r\n";
    let mut head = Vec::new();
    let mut seen = [0; 1024];
    loop {
        let count = match stream.peek(&mut seen) {
            // A read with a timeout is not restarted by the kernel if the process was stopped for a moment.
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            peeked => peeked?,
        };
        ensure!(
            count > 0,
            "the connection ended within {} bytes",
            head.len()
        );
        let had = head.len();
        head.extend(&seen[..count]);
        // The end may have begun in the bytes that were read before.
        let from = had.saturating_sub(END.len() - 1);
        let end = head[from..].windows(END.len()).position(|four| four == END);
        head.truncate(end.map_or(head.len(), |at| from + at + END.len()));
        let taken = head.len() - had;
        stream.read_exact(&mut seen[..taken])?;
        if end.is_some() {
            return Ok(head);
        }
    }
}
