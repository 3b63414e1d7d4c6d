//! Passes on the bytes between a client and its server, both of them sockets. The bytes go from one to the other within
//! the kernel (splice(2)), without a copy.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, SpliceFFlags, fcntl, splice};
use nix::sys::socket::{MsgFlags, recv};
use nix::unistd::pipe2;
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client::{end_in_order, has_ended};

/// Room for bytes on their way from a client to its server.
const REQUESTS: usize = 1 << 16;
/// Room for bytes on their way from a server to its client. What waits for a slow client is held here.
const RESPONSES: usize = 1 << 18;
/// Once the server has ended, a client that says nothing for this long is let go, as Linux does with a connection that
/// its program has closed (tcp_fin_timeout). Otherwise its sockets would stay here for ever.
const LINGER: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 60 });
/// Most bytes that `read_away` discards by one call to the kernel.
const AWAY: usize = 1 << 20;

/// Reads this many bytes and discards them without a copy (tcp(7), MSG_TRUNC).
pub(crate) async fn read_away(stream: &TcpStream, mut bytes: u64) -> io::Result<()> {
    // The kernel uses only the length of this buffer.
    let mut nothing = vec![0; AWAY.min(usize::try_from(bytes).unwrap_or(AWAY))];
    while bytes > 0 {
        let most = nothing.len().min(usize::try_from(bytes).unwrap_or(AWAY));
        let read = stream.async_io(Interest::READABLE, || {
            Ok(recv(
                stream.as_raw_fd(),
                &mut nothing[..most],
                MsgFlags::MSG_TRUNC,
            )?)
        });
        match read.await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => bytes -= read as u64,
        }
    }
    Ok(())
}

/// Passes on what both sides say until both have ended; each end is passed on by itself. The server owes `owed` bytes.
/// If it ends before it has sent them, that is an error, and its end is not passed on, because the client could take it
/// for the end of the response. If the server breaks off, the client first gets what the server had said. After an error
/// both connections end by a RST when their sockets are dropped.
pub(crate) async fn pass_both_ways(
    client: &TcpStream,
    server: &TcpStream,
    owed: u64,
) -> io::Result<()> {
    let end = |side: &TcpStream| SockRef::from(side).shutdown(Shutdown::Write);
    let (asked, answered) = (AtomicU64::new(0), AtomicU64::new(0));
    let end_responses = || match answered.load(Relaxed) < owed {
        true => Err(io::ErrorKind::UnexpectedEof.into()),
        false => end(client),
    };
    let mut requests = pin!(pass(client, server, REQUESTS, &asked));
    let mut responses = pin!(pass(server, client, RESPONSES, &answered));
    tokio::select! {
        passed = &mut responses => {
            passed?;
            end_responses()?;
            let mut before = None;
            while before != Some(asked.load(Relaxed)) {
                before = Some(asked.load(Relaxed));
                if let Ok(passed) = timeout(LINGER, requests.as_mut()).await {
                    passed?;
                    end(server)?;
                    break;
                }
            }
        }
        passed = &mut requests => match passed {
            Err(error) if has_ended(server) => {
                // The kernel reports a RST only once, so what comes of the server now may seem to end in order.
                let _ = responses.await;
                return Err(error);
            }
            passed => {
                passed?;
                end(server)?;
                responses.await?;
                end_responses()?;
            }
        },
    }
    end_in_order(client);
    end_in_order(server);
    Ok(())
}

/// Passes on bytes until `from` ends; `passed` counts them. At most `room` bytes are between the two.
async fn pass(from: &TcpStream, to: &TcpStream, room: usize, passed: &AtomicU64) -> io::Result<()> {
    let pipe = Pipe::new(room)?;
    loop {
        let mut filled = pipe.fill(from, u64::MAX).await?;
        if filled == 0 {
            return Ok(());
        }
        passed.fetch_add(filled as u64, Relaxed);
        while filled > 0 {
            filled -= pipe.send(to, filled).await?;
        }
    }
}

/// A pipe in which bytes go from one socket to another one. It is to be empty whenever it is filled: so if nothing more
/// goes in, nothing has come.
pub(crate) struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
    room: usize,
}

impl Pipe {
    const FLAGS: SpliceFFlags = SpliceFFlags::SPLICE_F_MOVE.union(SpliceFFlags::SPLICE_F_NONBLOCK);

    /// Makes a pipe with this much room, if this user's pipes do not have too much already.
    pub fn new(room: usize) -> io::Result<Self> {
        let (out, into) = pipe2(OFlag::O_NONBLOCK | OFlag::O_CLOEXEC)?;
        let room = resize(&into, room);
        Ok(Self { out, into, room })
    }

    /// How many bytes the pipe holds.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Fills the empty pipe with what has come, at most `most` bytes, and returns how many those are. 0: the other side
    /// has ended.
    pub async fn fill(&self, from: &TcpStream, most: u64) -> io::Result<usize> {
        let most = usize::try_from(most).map_or(self.room, |most| most.min(self.room));
        let fill = || Ok(splice(from, None, &self.into, None, most, Self::FLAGS)?);
        from.async_io(Interest::READABLE, fill).await
    }

    /// Sends as many of these bytes, which the pipe holds, as there is room for. Returns how many those are.
    pub async fn send(&self, to: &TcpStream, filled: usize) -> io::Result<usize> {
        let empty = || Ok(splice(&self.out, None, to, None, filled, Self::FLAGS)?);
        to.async_io(Interest::WRITABLE, empty).await
    }
}

/// Gives the pipe this much room, unless this user's pipes have too much room already (pipe(7)). Returns how much the
/// pipe holds.
fn resize(pipe: &OwnedFd, room: usize) -> usize {
    let resized = fcntl(pipe, FcntlArg::F_SETPIPE_SZ(room as i32));
    let size = resized.or_else(|_| fcntl(pipe, FcntlArg::F_GETPIPE_SZ));
    size.map_or(room, |size| usize::try_from(size).unwrap_or(room))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    const OWED: u64 = 20_000_000;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap());
        let (one, other) = tokio::join!(one, listener.accept());
        (one.unwrap(), other.unwrap().0)
    }

    fn bytes(count: usize) -> Vec<u8> {
        (0..count).map(|n| (n % 251) as u8).collect()
    }

    #[tokio::test]
    async fn what_is_read_away_is_gone_and_nothing_more() {
        let (mut server, mut here) = pair().await;
        let all = bytes(5_000_000);
        let sent = all.clone();
        let sender = tokio::spawn(async move {
            server.write_all(&sent).await.unwrap();
        });
        for count in [0, 1, 1 << 20, 3_000_000] {
            read_away(&here, count).await.unwrap();
        }
        let mut rest = Vec::new();
        here.read_to_end(&mut rest).await.unwrap();
        assert!(rest == all[1 + (1 << 20) + 3_000_000..]);
        sender.await.unwrap();
        let ended = read_away(&here, 1).await.map_err(|error| error.kind());
        assert_eq!(ended, Err(io::ErrorKind::UnexpectedEof));
    }

    #[tokio::test]
    async fn every_byte_goes_on_in_both_directions_and_so_do_the_ends() {
        let (mut client, to_client) = pair().await;
        let (mut server, to_server) = pair().await;
        let between =
            tokio::spawn(async move { pass_both_ways(&to_client, &to_server, OWED).await });
        let (request, response) = (bytes(300_000), bytes(OWED as usize));
        let (asked, answered) = (request.clone(), response.clone());
        let server = tokio::spawn(async move {
            let mut heard = vec![0; 300_000];
            server.read_exact(&mut heard).await.unwrap();
            assert!(heard == asked);
            server.write_all(&answered).await.unwrap();
            server.shutdown().await.unwrap();
            // The other direction is still open.
            let mut last = Vec::new();
            server.read_to_end(&mut last).await.unwrap();
            assert_eq!(last, b"bye");
        });
        client.write_all(&request).await.unwrap();
        let mut got = Vec::new();
        client.read_to_end(&mut got).await.unwrap();
        assert!(got == response);
        client.write_all(b"bye").await.unwrap();
        client.shutdown().await.unwrap();
        server.await.unwrap();
        between.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_server_that_ends_too_early_is_not_believed() {
        for (said, is_all) in [(OWED - 1, false), (OWED, true), (OWED + 1, true)] {
            let (mut client, to_client) = pair().await;
            let (mut server, to_server) = pair().await;
            let between = async { pass_both_ways(&to_client, &to_server, OWED).await };
            let server = async {
                server.write_all(&bytes(said as usize)).await.unwrap();
                server.shutdown().await.unwrap();
                server
            };
            let client = async {
                let mut got = vec![0; said as usize];
                client.read_exact(&mut got).await.unwrap();
                client.shutdown().await.unwrap();
            };
            let (ended, ..) = tokio::join!(between, server, client);
            assert_eq!(ended.is_ok(), is_all, "{said}");
        }
    }

    /// A server may refuse a request whose body it does not want, and close its socket: then a RST follows the answer.
    #[tokio::test]
    async fn what_a_server_says_before_it_breaks_off_goes_on() {
        let (mut client, to_client) = pair().await;
        let (mut server, to_server) = pair().await;
        let between = async {
            let passed = pass_both_ways(&to_client, &to_server, 0).await;
            drop(to_client);
            passed
        };
        let (mut heard, mut asks) = client.split();
        // The body is more than all buffers on its way hold, so writing goes on when the RST comes.
        let body = bytes(OWED as usize);
        let asks = async { asks.write_all(&body).await.is_err() };
        let refuses = async {
            server.read_exact(&mut [0; 1000]).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            server.write_all(b"no").await.unwrap();
            drop(server);
        };
        let hears = async {
            let mut answer = [0; 2];
            heard.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"no");
        };
        let (ended, is_cut_short, ..) = tokio::join!(between, asks, refuses, hears);
        ended.unwrap_err();
        assert!(is_cut_short);
    }

    /// A server that has answered and ended its side may close its socket while the client still sends: then the client
    /// is told by a RST.
    #[tokio::test]
    async fn a_server_that_breaks_off_behind_its_end_ends_it() {
        let (mut client, to_client) = pair().await;
        let (mut server, to_server) = pair().await;
        let between = tokio::spawn(async move { pass_both_ways(&to_client, &to_server, 0).await });
        client.write_all(&bytes(300_000)).await.unwrap();
        server.read_exact(&mut [0; 1000]).await.unwrap();
        server.write_all(b"no").await.unwrap();
        server.shutdown().await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, b"no");
        // Not all of the request was read, so the kernel sends a RST.
        drop(server);
        let asks = async { while client.write_all(&bytes(100_000)).await.is_ok() {} };
        let (ended, ()) = tokio::join!(between, asks);
        ended.unwrap().unwrap_err();
    }

    #[tokio::test]
    async fn a_client_that_does_nothing_behind_its_servers_end_is_let_go() {
        let (mut client, to_client) = pair().await;
        let (mut server, to_server) = pair().await;
        let between = tokio::spawn(async move { pass_both_ways(&to_client, &to_server, 0).await });
        server.write_all(b"all").await.unwrap();
        drop(server);
        let mut got = Vec::new();
        client.read_to_end(&mut got).await.unwrap();
        assert_eq!(got, b"all");
        let passed = timeout(Duration::from_secs(60), between).await;
        passed.expect("it has ended").unwrap().unwrap();
    }

    #[tokio::test]
    async fn who_breaks_off_ends_it() {
        let (client, to_client) = pair().await;
        let (mut server, to_server) = pair().await;
        let between =
            tokio::spawn(async move { pass_both_ways(&to_client, &to_server, OWED).await });
        crate::client::end_by_reset(&client);
        drop(client);
        let error = between.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        let mut rest = Vec::new();
        assert_eq!(server.read_to_end(&mut rest).await.unwrap(), 0);
    }
}
