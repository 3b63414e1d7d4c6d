//! The objects that pointers of C programs point to.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, RawFd};

use sockets::{Error, Peer, Session, Socket};

use nix::libc::{EINVAL, EPIPE};

use crate::code;

/// `struct eop_socket` of `include/eop.h`.
pub struct EopSocket {
    end: End,
    /// The last message. Its bytes from `read` on did not fit into the buffer and are still to be returned.
    rest: Vec<u8>,
    read: usize,
    ended: bool,
}

enum End {
    Client(Box<Socket>),
    Server(Box<Session>),
    Left,
}

/// `struct eop_listener` of `include/eop.h`.
pub struct EopListener(pub sockets::Listener);

impl EopSocket {
    pub fn client(socket: Socket) -> Self {
        Self::new(End::Client(Box::new(socket)))
    }

    pub fn server(session: Session) -> Self {
        Self::new(End::Server(Box::new(session)))
    }

    fn new(end: End) -> Self {
        Self {
            end,
            rest: Vec::new(),
            read: 0,
            ended: false,
        }
    }

    pub fn send(&mut self, message: &[u8]) -> Result<(), i32> {
        match &mut self.end {
            End::Client(socket) => socket.send(message),
            End::Server(session) => session.send(message),
            End::Left => return Err(EPIPE),
        }
        .map_err(|error| code::of(&error))
    }

    pub fn recv(&mut self, buffer: &mut [u8]) -> Result<usize, i32> {
        if self.more() > 0 {
            let count = self.more().min(buffer.len());
            buffer[..count].copy_from_slice(&self.rest[self.read..][..count]);
            self.read += count;
            return Ok(count);
        }
        let message = match &mut self.end {
            End::Client(socket) => socket.recv(),
            End::Server(session) => session.recv(),
            End::Left => return Err(EPIPE),
        };
        let Some(message) = message.map_err(|error: Error| code::of(&error))? else {
            self.ended = true;
            return Ok(0);
        };
        let count = message.len().min(buffer.len());
        let (fits, rest) = message.split_at(count);
        buffer[..count].copy_from_slice(fits);
        self.rest.clear();
        self.rest.extend(rest);
        self.read = 0;
        Ok(count)
    }

    pub fn more(&self) -> usize {
        self.rest.len() - self.read
    }

    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Redirects the client. If the client is plain and cannot be redirected, the session remains usable.
    pub fn redirect(&mut self, answer: Option<&[u8]>, target: SocketAddr) -> Result<(), i32> {
        let session = match &mut self.end {
            End::Server(session) => session,
            End::Client(_) => return Err(EINVAL),
            End::Left => return Err(EPIPE),
        };
        if !session.can_redirect().map_err(|error| code::of(&error))? {
            return Err(code::of(&Error::Plain {
                peer: session.from(),
            }));
        }
        let End::Server(session) = std::mem::replace(&mut self.end, End::Left) else {
            return Err(EINVAL);
        };
        session
            .redirect(answer, target)
            .map_err(|error| code::of(&error))
    }

    pub fn peer(&self) -> Option<Peer> {
        match &self.end {
            End::Client(socket) => Some(socket.peer()),
            End::Server(session) => session.peer(),
            End::Left => Some(Peer::Eop),
        }
    }

    pub fn fd(&self) -> RawFd {
        match &self.end {
            End::Client(socket) => socket.tcp().as_raw_fd(),
            End::Server(session) => session.tcp().as_raw_fd(),
            End::Left => -1,
        }
    }
}
