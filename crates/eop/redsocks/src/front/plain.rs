//! Clients that do not speak EOP.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use httparse::{EMPTY_HEADER, Request, Status};
use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;

use super::eop::Failed;
use super::{Plain, Shared, connect, linger};
use crate::pipe::PIECE;

/// The longest request line and header fields that are read, in bytes.
const LONGEST_HEAD: usize = 16 << 10;
const MOST_HEADERS: usize = 96;

pub(super) async fn serve(
    shared: &Shared,
    stream: &mut TcpStream,
    here: SocketAddr,
    from: SocketAddr,
    mut first: Vec<u8>,
    since: Instant,
) -> Result<(), Failed> {
    if let Plain::Location { alternative } = shared.options.plain
        && shared.has_others
        && let Some(target) = target(stream, &mut first).await?
    {
        let path = target.split('?').next().unwrap_or_default().as_bytes();
        if let Some(place) = shared.elsewhere(here, from.ip(), Some(path), &[]) {
            let answer = location(place, &target, alternative);
            stream.write_all(answer.as_bytes()).await?;
            shared.counters.located.add(since.elapsed());
            linger(stream).await;
            return Ok(());
        }
    }
    relay(shared, stream, from, &first).await
}

fn location(place: SocketAddr, target: &str, alternative: Option<Duration>) -> String {
    // The protocol's name is a token, in which a slash must be encoded (RFC 7838, section 3).
    let alternative = alternative.map(|age| {
        let age = age.as_secs();
        format!("Alt-Svc: http%2F1.1=\"{place}\"; ma={age}\r\n")
    });
    format!(
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://{place}{target}\r\n{}\
         Content-Length: 0\r\nConnection: close\r\n\r\n",
        alternative.unwrap_or_default()
    )
}

/// Reads the target of the request that the client begins with. Returns `None` if the client does not speak HTTP/1, or
/// its head is longer than what is read here.
async fn target(stream: &mut TcpStream, first: &mut Vec<u8>) -> io::Result<Option<String>> {
    loop {
        let mut headers = [EMPTY_HEADER; MOST_HEADERS];
        let mut request = Request::new(&mut headers);
        match request.parse(first) {
            Ok(Status::Complete(_)) => {
                let target = request.path.unwrap_or_default();
                // The target of a proxy's client already names another server.
                return Ok(target.starts_with('/').then(|| target.to_owned()));
            }
            Ok(Status::Partial) if first.len() <= LONGEST_HEAD => {}
            Ok(Status::Partial) | Err(_) => return Ok(None),
        }
        if stream.read_buf(first).await? == 0 {
            return Ok(None);
        }
    }
}

async fn relay(
    shared: &Shared,
    stream: &mut TcpStream,
    from: SocketAddr,
    first: &[u8],
) -> Result<(), Failed> {
    let mut far = reach(shared, from).await?;
    shared.counters.relayed.add();
    // If the connection ends early for whatever reason, neither end must mistake a part for the whole.
    for end in [&*stream, &far] {
        SockRef::from(end).set_linger(Some(Duration::ZERO))?;
    }
    far.write_all(first).await?;
    copy_bidirectional_with_sizes(stream, &mut far, PIECE, PIECE).await?;
    for end in [&*stream, &far] {
        let _ = SockRef::from(end).set_linger(None);
    }
    Ok(())
}

async fn reach(shared: &Shared, from: SocketAddr) -> Result<TcpStream, Failed> {
    if let Some(behind) = shared.behind {
        return Ok(connect(behind).await?);
    }
    let mut tried = Vec::new();
    while let Some(place) = shared.choose(from.ip(), b"", &tried) {
        match connect(place).await {
            Ok(stream) => return Ok(stream),
            Err(_) => shared.is_down(place),
        }
        tried.push(place);
    }
    Err(Failed::Nobody)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_to_go_and_for_how_long() {
        let place = SocketAddr::from(([192, 0, 2, 7], 8080));
        let plain = location(place, "/a?b", None);
        assert!(plain.starts_with("HTTP/1.1 307 "), "{plain}");
        assert!(
            plain.contains("\r\nLocation: http://192.0.2.7:8080/a?b\r\n"),
            "{plain}"
        );
        assert!(
            plain.ends_with("\r\n\r\n") && !plain.contains("Alt-Svc"),
            "{plain}"
        );

        // RFC 7838, section 3, writes a name with a slash like this, and RFC 3986 an address of IPv6.
        let place = SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 80));
        let told = location(place, "/", Some(Duration::from_secs(60)));
        assert!(
            told.contains("\r\nAlt-Svc: http%2F1.1=\"[::1]:80\"; ma=60\r\n"),
            "{told}"
        );
    }
}
