//! Calls that wait.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::task::Poll;
use std::time::Instant;

use eop_protocol::NotAllowed;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::driver::{Client, Server, Until, Wait, listen};
use crate::{Error, Message, Options, Outgoing, Peer, ServerOptions};

/// A session with whichever server it is at.
#[derive(Debug)]
pub struct Socket(Client<TcpStream>);

/// Connects to a server, and finds out what it speaks if it was not told.
///
/// # Errors
/// [`Error::Io`]: no connection. [`Error::Session`].
pub fn connect(server: SocketAddr, options: Options) -> Result<Socket, Error> {
    let mut socket = Socket(Client::connect(server, options)?);
    socket.until_done(Client::connected)?;
    Ok(socket)
}

impl Socket {
    /// What the server speaks.
    pub const fn peer(&self) -> Peer {
        self.0.peer()
    }

    /// The server that it is at, or on its way to.
    pub const fn server(&self) -> SocketAddr {
        self.0.server()
    }

    /// The last redirect that was not followed because of [`Options::allow`].
    pub const fn not_allowed(&self) -> Option<NotAllowed> {
        self.0.not_allowed()
    }

    /// The connection; another one after each redirect.
    pub const fn tcp(&self) -> &TcpStream {
        self.0.tcp()
    }

    /// Sends a request: one message, or bytes to a plain server. If the connection turns out to be gone,
    /// [`Self::recv`] says so, which may find a redirect on it.
    ///
    /// # Errors
    /// [`Error::Redo`]: requests before this one must be sent again first. [`Error::Session`],
    /// [`Error::TooLong`], [`Error::Io`].
    pub fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        self.until_done(Client::connected)?;
        self.0.send(Outgoing::of(message))?;
        self.until_done(Client::flush)
    }

    /// As [`Self::send`], without a copy.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn send_message(&mut self, message: &mut Message) -> Result<(), Error> {
        self.until_done(Client::connected)?;
        self.0.send(message.outgoing())?;
        self.until_done(Client::flush)
    }

    /// The next message of the server, or bytes of a plain one; `None` when it has ended the session.
    ///
    /// # Errors
    /// [`Error::Redo`], unless the session does that itself. [`Error::Session`], [`Error::Protocol`],
    /// [`Error::Io`].
    pub fn recv(&mut self) -> Result<Option<&[u8]>, Error> {
        let range = self.until_done(Client::recv)?;
        Ok(range.map(|range| self.0.at(range)))
    }

    fn until_done<R>(
        &mut self,
        mut call: impl FnMut(&mut Client<TcpStream>) -> Poll<Result<R, Error>>,
    ) -> Result<R, Error> {
        loop {
            if let Poll::Ready(done) = call(&mut self.0) {
                return done;
            }
            wait(self.0.tcp(), self.0.wait())?;
        }
    }
}

/// Where clients come.
#[derive(Debug)]
pub struct Listener {
    options: ServerOptions,
    listener: TcpListener,
    announced: bool,
}

impl Listener {
    /// Listens.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn bind(at: SocketAddr, options: ServerOptions) -> Result<Self, Error> {
        let (listener, announced) = listen(at, &options)?;
        Ok(Self {
            options,
            listener,
            announced,
        })
    }

    /// The next client.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn accept(&self) -> Result<Session, Error> {
        let (stream, from) = self.listener.accept().map_err(Error::io("accepting"))?;
        Server::new(stream, from, self.announced, &self.options).map(Session)
    }

    /// Where it listens.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn local_addr(&self) -> Result<SocketAddr, Error> {
        self.listener
            .local_addr()
            .map_err(Error::io("asking for the local address"))
    }

    /// The socket.
    pub const fn tcp(&self) -> &TcpListener {
        &self.listener
    }
}

/// A client's connection.
#[derive(Debug)]
pub struct Session(Server<TcpStream>);

impl Session {
    /// What the client speaks, if that is known: after the first [`Self::recv`] it is.
    pub const fn peer(&self) -> Option<Peer> {
        self.0.peer()
    }

    /// The client's address.
    pub const fn from(&self) -> SocketAddr {
        self.0.from()
    }

    /// Where this server had redirected the client to, and nobody answered. Known after the first
    /// [`Self::recv`]; not to be chosen again at once.
    pub const fn fell_back_from(&self) -> Option<SocketAddr> {
        self.0.fell_back_from()
    }

    /// The connection.
    pub const fn tcp(&self) -> &TcpStream {
        self.0.tcp()
    }

    /// The next request, or bytes of a plain client; `None` when the client has ended the session.
    ///
    /// # Errors
    /// [`Error::Session`], [`Error::Protocol`], [`Error::Io`]: drop the session.
    pub fn recv(&mut self) -> Result<Option<&[u8]>, Error> {
        let range = self.until_done(Server::recv)?;
        Ok(range.map(|range| self.0.at(range)))
    }

    /// Sends an answer: one message, or bytes to a plain client.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::Io`].
    pub fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        self.send_outgoing(Outgoing::of(message))
    }

    /// As [`Self::send`], without a copy.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn send_message(&mut self, message: &mut Message) -> Result<(), Error> {
        self.send_outgoing(message.outgoing())
    }

    /// Sends the client to `target`; first delivers `answer`, if there is one. This end is over at once, and
    /// what the client still sends is for the other server.
    ///
    /// # Errors
    /// [`Error::Plain`]: such a client must be served here; ask
    /// [`Self::can_redirect`] beforehand. [`Error::TooLong`], [`Error::Io`].
    pub fn redirect(mut self, answer: Option<&[u8]>, target: SocketAddr) -> Result<(), Error> {
        self.until_done(Server::settled)?;
        self.0.redirect(answer, target)?;
        self.until_done(Server::flush)?;
        self.0.leave();
        Ok(())
    }

    /// Whether the client can be redirected. If it may be of either kind and has said nothing, waits for
    /// its first bytes for [`ServerOptions::patience`].
    ///
    /// # Errors
    /// [`Error::Session`], [`Error::Protocol`], [`Error::Io`]: drop the session.
    pub fn can_redirect(&mut self) -> Result<bool, Error> {
        self.until_done(Server::settled)?;
        Ok(self.0.can_redirect())
    }

    fn send_outgoing(&mut self, message: Outgoing<'_>) -> Result<(), Error> {
        self.until_done(Server::settled)?;
        self.0.send(message)?;
        self.until_done(Server::flush)
    }

    fn until_done<R>(
        &mut self,
        mut call: impl FnMut(&mut Server<TcpStream>) -> Poll<Result<R, Error>>,
    ) -> Result<R, Error> {
        loop {
            if let Poll::Ready(done) = call(&mut self.0) {
                return done;
            }
            wait(self.0.tcp(), self.0.wait())?;
        }
    }
}

fn wait(stream: &TcpStream, wait: Wait) -> Result<(), Error> {
    let what = match wait.until {
        Until::Readable => PollFlags::POLLIN,
        Until::Writable => PollFlags::POLLOUT,
    };
    let rest = |deadline: Instant| {
        let rest = deadline.saturating_duration_since(Instant::now());
        PollTimeout::try_from(rest).unwrap_or(PollTimeout::MAX)
    };
    let timeout = wait.deadline.map_or(PollTimeout::NONE, rest);
    // Whatever ends it, the call that waited is made again, and sees.
    match poll(&mut [PollFd::new(stream.as_fd(), what)], timeout) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(Error::io("waiting")(error.into())),
    }
}
