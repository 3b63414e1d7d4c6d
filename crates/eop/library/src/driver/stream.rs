//! A TCP connection that is made while the application does something else.

use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::task::{Poll, ready};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc::{MSG_DONTWAIT, MSG_MORE, MSG_NOSIGNAL};
use nix::sys::socket::{MsgFlags, recv};
use socket2::{Domain, SockRef, Socket, Type};

use super::{Tcp, Until, Wait, inbox::Inbox, ulp};

#[derive(Debug)]
pub(crate) struct Stream<T> {
    tcp: T,
    /// The time until which the connection must be made; `None` once it is made.
    connecting: Option<Instant>,
    /// Whether the SYN announced that this end speaks EOP.
    pub announced: bool,
    /// Whether this end has sent nothing yet, so that the server may not know of the connection yet.
    silent: bool,
    /// Bytes to be sent before anything else; the first `sent` of them were sent.
    unsent: Vec<u8>,
    sent: usize,
    /// A buffer in which heads and messages are joined.
    joined: Vec<u8>,
    /// Another connection, to be closed once something was sent on this one.
    left: Option<T>,
    /// What the last pending call waits for.
    wait: Wait,
}

/// Up to this length, a copy costs less than passing two pieces to the kernel.
const JOINED: usize = 12 << 10;

impl<T: Tcp> Stream<T> {
    /// Begins to connect. If this end is the first to speak (`speaks`), it does not send the packet that only ends the
    /// handshake: its first bytes end it.
    pub fn connect(
        to: SocketAddr,
        timeout: Duration,
        nodelay: bool,
        announce: bool,
        speaks: bool,
    ) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM.nonblocking(), None)?;
        if nodelay {
            socket.set_tcp_nodelay(true)?;
        }
        if speaks {
            socket.set_tcp_quickack(false)?;
        }
        let announced = announce && ulp::announce(&socket);
        match socket.connect(&to.into()) {
            Err(error) if error.raw_os_error() != Some(Errno::EINPROGRESS as i32) => {
                return Err(error);
            }
            _ => {}
        }
        Ok(Self {
            connecting: Some(Instant::now() + timeout),
            announced,
            silent: speaks,
            ..Self::accepted(T::connecting(socket.into())?)
        })
    }

    pub const fn accepted(tcp: T) -> Self {
        Self {
            tcp,
            connecting: None,
            announced: false,
            silent: false,
            unsent: Vec::new(),
            sent: 0,
            joined: Vec::new(),
            left: None,
            wait: Wait {
                until: Until::Readable,
                deadline: None,
            },
        }
    }

    pub const fn tcp(&self) -> &T {
        &self.tcp
    }

    pub fn into_tcp(self) -> T {
        self.tcp
    }

    /// What the last call that was `Pending` waits for.
    pub const fn wait(&self) -> Wait {
        self.wait
    }

    /// Closes the connection `left`, but only once the first bytes were sent on this one, so that the new server is
    /// already at work.
    pub fn close_then(&mut self, left: T) {
        self.left = Some(left);
    }

    /// Is ready when the connection is made.
    #[inline]
    pub fn finish(&mut self) -> Poll<io::Result<()>> {
        match self.connecting {
            None => Poll::Ready(Ok(())),
            Some(deadline) => self.finish_until(deadline),
        }
    }

    #[cold]
    fn finish_until(&mut self, deadline: Instant) -> Poll<io::Result<()>> {
        let socket = SockRef::from(&self.tcp);
        if socket.peer_addr().is_err() {
            if let Some(error) = socket.take_error()? {
                return Poll::Ready(Err(error));
            }
            if Instant::now() >= deadline {
                return Poll::Ready(Err(ErrorKind::TimedOut.into()));
            }
            return self.pending(Until::Writable, Some(deadline));
        }
        self.tcp.connected()?;
        self.connecting = None;
        Poll::Ready(Ok(()))
    }

    /// Queues bytes that are to be sent with the next ones, or before the next ones are awaited.
    pub fn put(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
    }

    /// Sends on a connection that is made. [`Self::flush`] sends what cannot leave at once.
    #[inline]
    pub fn write(&mut self, head: &[u8], message: &[u8]) -> io::Result<()> {
        self.write_flagged(head, message, MSG_NOSIGNAL)
    }

    /// Sends the last bytes of the connection. They wait for the connection's end, so that they leave together with
    /// it.
    pub fn write_last(&mut self, head: &[u8], message: &[u8]) -> io::Result<()> {
        self.write_flagged(head, message, MSG_NOSIGNAL | MSG_MORE)
    }

    /// Is ready when all is sent.
    #[inline]
    pub fn flush(&mut self) -> Poll<io::Result<()>> {
        if self.unsent.is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.flush_unsent()
    }

    #[cold]
    fn flush_unsent(&mut self) -> Poll<io::Result<()>> {
        while self.sent < self.unsent.len() {
            match self.send(&self.unsent[self.sent..], &[], MSG_NOSIGNAL) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return self.pending(Until::Writable, None);
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        self.unsent.clear();
        self.sent = 0;
        self.has_spoken();
        Poll::Ready(Ok(()))
    }

    /// Reads the bytes that are there, or waits for some. Is ready with `false` at the end of the stream.
    #[inline]
    pub fn read(&mut self, inbox: &mut Inbox) -> Poll<io::Result<bool>> {
        ready!(self.may_read())?;
        match self.recv(inbox, MsgFlags::empty()) {
            Err(error) if error.kind() == ErrorKind::WouldBlock && T::RETURNS => {
                self.pending(Until::Readable, None)
            }
            other => Poll::Ready(other),
        }
    }

    /// Reads as [`Self::read`] does, but only until `deadline`, when it is ready with `None`.
    pub fn read_until(
        &mut self,
        inbox: &mut Inbox,
        deadline: Instant,
    ) -> Poll<io::Result<Option<bool>>> {
        ready!(self.may_read())?;
        match self.recv(inbox, MsgFlags::from_bits_retain(MSG_DONTWAIT)) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if Instant::now() >= deadline {
                    return Poll::Ready(Ok(None));
                }
                self.pending(Until::Readable, Some(deadline))
            }
            other => Poll::Ready(other.map(Some)),
        }
    }

    #[inline]
    fn write_flagged(&mut self, head: &[u8], message: &[u8], flags: i32) -> io::Result<()> {
        if !self.unsent.is_empty() {
            self.put(head);
            self.put(message);
            return match self.flush() {
                Poll::Ready(done) => done,
                Poll::Pending => Ok(()),
            };
        }
        if head.is_empty() || message.is_empty() || head.len() + message.len() > JOINED {
            self.write_pieces(head, message, flags)?;
        } else {
            let mut joined = std::mem::take(&mut self.joined);
            joined.clear();
            joined.extend_from_slice(head);
            joined.extend_from_slice(message);
            let written = self.write_pieces(&joined, &[], flags);
            self.joined = joined;
            written?;
        }
        self.has_spoken();
        Ok(())
    }

    fn write_pieces(&mut self, mut head: &[u8], mut message: &[u8], flags: i32) -> io::Result<()> {
        while !head.is_empty() || !message.is_empty() {
            match self.send(head, message, flags) {
                Ok(count) => {
                    let of_head = count.min(head.len());
                    head = &head[of_head..];
                    message = &message[count - of_head..];
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.put(head);
                    self.put(message);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    #[inline]
    fn has_spoken(&mut self) {
        self.silent = false;
        self.left = None;
    }

    #[inline]
    fn may_read(&mut self) -> Poll<io::Result<()>> {
        ready!(self.finish())?;
        ready!(self.flush())?;
        if self.silent {
            // The server speaks first, so it must learn that the handshake is over.
            self.silent = false;
            SockRef::from(&self.tcp).set_tcp_quickack(true)?;
        }
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn send(&self, head: &[u8], message: &[u8], flags: i32) -> io::Result<usize> {
        // write(2) would raise SIGPIPE in a program written in C.
        let socket = SockRef::from(&self.tcp);
        retried(|| {
            self.tcp.call(Until::Writable, || match (head, message) {
                (only, []) | ([], only) => socket.send_with_flags(only, flags),
                _ => {
                    let both = [IoSlice::new(head), IoSlice::new(message)];
                    socket.send_vectored_with_flags(&both, flags)
                }
            })
        })
    }

    #[inline]
    fn recv(&self, inbox: &mut Inbox, flags: MsgFlags) -> io::Result<bool> {
        let space = inbox.space();
        let count = retried(|| {
            self.tcp.call(Until::Readable, || {
                let descriptor = self.tcp.as_fd().as_raw_fd();
                Ok(recv(descriptor, space, flags)?)
            })
        })?;
        inbox.filled(count);
        Ok(count > 0)
    }

    const fn pending<R>(&mut self, until: Until, deadline: Option<Instant>) -> Poll<R> {
        self.wait = Wait { until, deadline };
        Poll::Pending
    }
}

fn retried<R>(mut call: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
