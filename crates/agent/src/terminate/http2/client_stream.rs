//! A client's socket and session as one stream of data. Its buffers are bounded: what is written waits until the client
//! takes it.

use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use baton_tls::{LONGEST_PLAIN, Received, RecordError, Session};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use super::super::socket::{STALL, poll_piece};
use super::super::state::State;
use crate::client::{LINGERS, end_in_order};

/// Nothing more is encrypted while this many bytes of records wait for the client.
const ROOM: usize = 64 << 10;

/// A client's connection that has a session. It ends with a RST unless it is shut down.
pub(super) struct ClientStream {
    client: TcpStream,
    session: Session,
    /// Records of the client that are not whole yet.
    client_in: Vec<u8>,
    /// Data of the client that nobody has read yet.
    plain: Queue,
    /// Data for the client that fills no record yet.
    unsealed: Vec<u8>,
    /// Records that wait for the client to take them.
    client_out: Queue,
    client_has_ended: bool,
    /// Why the session has failed, until the client has been told and this has been returned.
    failure: Option<RecordError>,
    /// Runs while the client takes nothing.
    stall: Option<Pin<Box<Sleep>>>,
    ending: Ending,
}

/// How far the connection is with its end.
enum Ending {
    Open,
    /// The last records have to be taken.
    Closing,
    /// The client has a while to end its own side.
    Lingering(Pin<Box<Sleep>>),
    Ended,
}

/// Bytes of which the first are taken off little by little.
#[derive(Default)]
struct Queue {
    bytes: Vec<u8>,
    taken: usize,
}

impl Queue {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    fn take(&mut self, count: usize) {
        self.taken += count;
        if self.taken == self.bytes.len() || self.taken >= ROOM {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
    }
}

impl ClientStream {
    pub fn new(client: TcpStream, state: State) -> Self {
        let plain = Queue {
            bytes: state.plain,
            taken: 0,
        };
        Self {
            client,
            session: state.session,
            client_in: state.client_in,
            plain,
            unsealed: Vec::with_capacity(LONGEST_PLAIN),
            client_out: Queue::default(),
            client_has_ended: false,
            failure: None,
            stall: None,
            ending: Ending::Open,
        }
    }

    /// Encrypts the data that waits.
    fn seal(&mut self) -> io::Result<()> {
        let sent = (self.session).send(&self.unsealed, &mut self.client_out.bytes);
        self.unsealed.clear();
        sent.map_err(io::Error::other)
    }

    /// Sends until no record waits. A client that takes nothing for a while is given up.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.client_out.rest().is_empty() {
            match Pin::new(&mut self.client).poll_write(cx, self.client_out.rest()) {
                Poll::Ready(written) => {
                    self.client_out.take(written?);
                    self.stall = None;
                }
                Poll::Pending => {
                    let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(STALL)));
                    ready!(stall.as_mut().poll(cx));
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Takes the data out of the client's records that are whole.
    fn open_records(&mut self) {
        let alerts = &mut self.client_out.bytes;
        match (self.session).receive(&mut self.client_in, &mut self.plain.bytes, alerts) {
            Ok(Received::Open) => (),
            Ok(Received::Closed) => self.client_has_ended = true,
            Err(error) => self.failure = Some(error),
        }
    }

    /// Reads what has come, at most a piece.
    fn poll_records(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let count = ready!(poll_piece(&mut self.client, cx, &mut self.client_in))?;
        // HTTP/2 itself says where each message ends. So it does no harm if somebody cuts the session short.
        self.client_has_ended |= count == 0;
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.failure.is_none() && this.plain.rest().is_empty() && !this.client_in.is_empty()
            {
                this.open_records();
            }
            let plain = this.plain.rest();
            if !plain.is_empty() {
                let count = plain.len().min(buffer.remaining());
                buffer.put_slice(&plain[..count]);
                this.plain.take(count);
                return Poll::Ready(Ok(()));
            }
            // What waits for the client, such as an alert, goes out before more is read.
            let sent = this.poll_send(cx);
            if let Some(error) = this.failure {
                // The client may have gone without hearing the alert.
                let _ = ready!(sent);
                this.failure = None;
                end_in_order(&this.client);
                return Poll::Ready(Err(io::Error::other(error)));
            }
            if this.client_has_ended {
                return Poll::Ready(Ok(()));
            }
            match sent {
                Poll::Pending if this.client_out.rest().len() >= ROOM => return Poll::Pending,
                Poll::Pending => (),
                Poll::Ready(sent) => sent?,
            }
            ready!(this.poll_records(cx))?;
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.client_out.rest().len() >= ROOM {
            ready!(this.poll_send(cx))?;
        }
        let count = data.len().min(LONGEST_PLAIN - this.unsealed.len());
        this.unsealed.extend_from_slice(&data[..count]);
        if this.unsealed.len() == LONGEST_PLAIN {
            this.seal()?;
        }
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.unsealed.is_empty() {
            this.seal()?;
        }
        this.poll_send(cx)
    }

    /// Ends the session and the connection when the client has taken everything.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            match &mut this.ending {
                Ending::Open => {
                    if !this.unsealed.is_empty() {
                        this.seal()?;
                    }
                    this.session.close(&mut this.client_out.bytes);
                    this.ending = Ending::Closing;
                }
                Ending::Closing => {
                    ready!(this.poll_send(cx))?;
                    end_in_order(&this.client);
                    // It fails if the client has gone already.
                    let _ = SockRef::from(&this.client).shutdown(Shutdown::Write);
                    this.ending = Ending::Lingering(Box::pin(sleep(LINGERS)));
                }
                // A socket that is closed with data in it would send a RST, which could destroy the rest of a response.
                Ending::Lingering(time) => {
                    if time.as_mut().poll(cx).is_ready() {
                        this.ending = Ending::Ended;
                        continue;
                    }
                    let mut nothing = [0; 4096];
                    let mut room = ReadBuf::new(&mut nothing);
                    match Pin::new(&mut this.client).poll_read(cx, &mut room) {
                        Poll::Ready(Ok(())) if !room.filled().is_empty() => continue,
                        Poll::Ready(_) => this.ending = Ending::Ended,
                        Poll::Pending => return Poll::Pending,
                    }
                }
                Ending::Ended => return Poll::Ready(Ok(())),
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
