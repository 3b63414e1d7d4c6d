//! A TCP connection that is made while the application does something else.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc::MSG_NOSIGNAL;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, SockRef, Socket, Type};

use crate::{inbox::Inbox, ulp};

#[derive(Debug)]
pub(crate) struct Stream {
    stream: TcpStream,
    /// Until then it must be connected; then it blocks like any other.
    connecting: Option<Instant>,
    /// Its SYN said that this end speaks EOP.
    pub announced: bool,
    /// Where heads and messages are joined.
    joined: Vec<u8>,
}

/// Up to here a copy costs less than telling the kernel of two pieces.
const JOINED: usize = 4 << 10;

impl Stream {
    /// Begins to connect.
    pub fn connect(
        to: SocketAddr,
        timeout: Duration,
        nodelay: bool,
        announce: bool,
    ) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM.nonblocking(), None)?;
        if nodelay {
            socket.set_tcp_nodelay(true)?;
        }
        let announced = announce && ulp::announce(&socket);
        match socket.connect(&to.into()) {
            Err(error) if error.raw_os_error() != Some(Errno::EINPROGRESS as i32) => {
                return Err(error);
            }
            _ => {}
        }
        Ok(Self {
            stream: socket.into(),
            connecting: Some(Instant::now() + timeout),
            announced,
            joined: Vec::new(),
        })
    }

    pub fn accepted(stream: TcpStream) -> Self {
        Self {
            stream,
            connecting: None,
            announced: false,
            joined: Vec::new(),
        }
    }

    pub const fn tcp(&self) -> &TcpStream {
        &self.stream
    }

    pub fn into_tcp(self) -> TcpStream {
        self.stream
    }

    /// Waits until it is connected.
    pub fn finish(&mut self) -> io::Result<()> {
        if self.connecting.is_some() {
            // Close by it is there already.
            if self.stream.peer_addr().is_ok() {
                return self.connected();
            }
            self.writable()?;
            if let Some(error) = self.stream.take_error()? {
                return Err(error);
            }
            self.connected()?;
        }
        Ok(())
    }

    /// Writes all of it, when the connection is there.
    pub fn write(&mut self, head: &[u8], message: &[u8]) -> io::Result<()> {
        if message.is_empty() {
            return self.write_all(head);
        }
        if message.len() <= JOINED {
            let mut joined = std::mem::take(&mut self.joined);
            joined.clear();
            joined.extend(head);
            joined.extend(message);
            let written = self.write_all(&joined);
            self.joined = joined;
            return written;
        }
        let mut parts = [IoSlice::new(head), IoSlice::new(message)];
        let mut parts = &mut parts[..];
        while !parts.is_empty() {
            // Not writev(2), which raises SIGPIPE in a program of C, and takes a longer way.
            let socket = SockRef::from(&self.stream);
            let written = socket.send_vectored_with_flags(parts, MSG_NOSIGNAL);
            IoSlice::advance_slices(&mut parts, self.wrote(written)?);
        }
        Ok(())
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.stream.write(bytes);
            bytes = &bytes[self.wrote(written)?..];
        }
        Ok(())
    }

    /// How many bytes a write took; 0 if it is to be tried again.
    fn wrote(&mut self, written: io::Result<usize>) -> io::Result<usize> {
        match written {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                // The first bytes left before the switch: whoever is asked already works.
                self.connected()?;
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock && self.connecting.is_some() =>
            {
                self.writable()?;
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads what is there, or waits for more; `false` at the end.
    pub fn read(&mut self, inbox: &mut Inbox) -> io::Result<bool> {
        self.finish()?;
        loop {
            match self.stream.read(inbox.space()) {
                Ok(count) => {
                    inbox.filled(count);
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// As [`Self::read`], but waits only until `deadline`: then `None`.
    pub fn read_until(&mut self, inbox: &mut Inbox, deadline: Instant) -> io::Result<Option<bool>> {
        self.finish()?;
        if !wait(&self.stream, PollFlags::POLLIN, deadline)? {
            return Ok(None);
        }
        self.read(inbox).map(Some)
    }

    fn connected(&mut self) -> io::Result<()> {
        if self.connecting.take().is_some() {
            self.stream.set_nonblocking(false)?;
        }
        Ok(())
    }

    fn writable(&self) -> io::Result<()> {
        let deadline = self.connecting.unwrap_or_else(Instant::now);
        if wait(&self.stream, PollFlags::POLLOUT, deadline)? {
            Ok(())
        } else {
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}

/// `false` if nothing happened until `deadline`.
fn wait(stream: &TcpStream, what: PollFlags, deadline: Instant) -> io::Result<bool> {
    loop {
        let rest = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(rest).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(stream.as_fd(), what)], timeout) {
            Ok(0) if Instant::now() >= deadline => return Ok(false),
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
}
