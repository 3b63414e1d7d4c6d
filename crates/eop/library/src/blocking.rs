//! The blocking sockets.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::task::Poll;
use std::time::Instant;

use eop_protocol::NotAllowed;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::driver::{Client, Server, Tcp, Until, Wait, listen};
use crate::{Error, Message, Options, Outgoing, Peer, ServerOptions};

/// A client's session, with the server that it is redirected to as well.
#[derive(Debug)]
pub struct Socket<T = TcpStream>(pub(crate) Client<T>);

/// Connects to a server, and finds out whether it speaks EOP, unless [`Options::speak`] says it.
///
/// # Errors
/// [`Error::Io`] if no connection can be made; [`Error::Session`].
pub fn connect(server: SocketAddr, options: Options) -> Result<Socket, Error> {
    let mut socket = Socket(Client::connect(server, options)?);
    socket.until_done(Client::connected)?;
    Ok(socket)
}

impl<T: Tcp> Socket<T> {
    /// The protocol that the server speaks.
    pub const fn peer(&self) -> Peer {
        self.0.peer()
    }

    /// The server that the session is at, or on its way to.
    pub const fn server(&self) -> SocketAddr {
        self.0.server()
    }

    /// The last redirect that was not followed because of [`Options::allow`].
    pub const fn not_allowed(&self) -> Option<NotAllowed> {
        self.0.not_allowed()
    }

    /// The TCP connection, which is another one after each redirect.
    pub const fn tcp(&self) -> &T {
        self.0.tcp()
    }
}

impl Socket<TcpStream> {
    /// Sends a request: one message, or bytes to a plain server. If the connection is gone, this does not report it:
    /// [`Self::recv`] does, because a redirect may still be found on the connection.
    ///
    /// # Errors
    /// [`Error::Redo`] if requests before this one must be sent again first; [`Error::Session`], [`Error::TooLong`],
    /// [`Error::Io`].
    pub fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        self.until_done(Client::connected)?;
        self.0.send(Outgoing::of(message))?;
        self.until_done(Client::flush)
    }

    /// Sends a request as [`Self::send`] does, but without a copy.
    ///
    /// # Errors
    /// The errors of [`Self::send`].
    pub fn send_message(&mut self, message: &mut Message) -> Result<(), Error> {
        self.until_done(Client::connected)?;
        self.0.send(message.outgoing())?;
        self.until_done(Client::flush)
    }

    /// Receives the next message of the server, or bytes of a plain one; `None` if the server has ended the session.
    ///
    /// # Errors
    /// [`Error::Redo`], unless the session itself sends requests again; [`Error::Session`], [`Error::Protocol`],
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

/// A socket that listens for clients.
#[derive(Debug)]
pub struct Listener {
    options: ServerOptions,
    listener: TcpListener,
    announced: bool,
}

impl Listener {
    /// Listens at an address.
    ///
    /// # Errors
    /// [`Error::Io`] if the address cannot be listened on.
    pub fn bind(at: SocketAddr, options: ServerOptions) -> Result<Self, Error> {
        let (listener, announced) = listen(at, &options)?;
        Ok(Self {
            options,
            listener,
            announced,
        })
    }

    /// Waits for the next client.
    ///
    /// # Errors
    /// [`Error::Io`] if no connection can be accepted.
    pub fn accept(&self) -> Result<Session, Error> {
        let (stream, from) = self.listener.accept().map_err(Error::io("accepting"))?;
        Server::new(stream, from, self.announced, &self.options).map(Session)
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// [`Error::Io`] if the system does not tell it.
    pub fn local_addr(&self) -> Result<SocketAddr, Error> {
        self.listener
            .local_addr()
            .map_err(Error::io("asking for the local address"))
    }

    /// The listening socket.
    pub const fn tcp(&self) -> &TcpListener {
        &self.listener
    }
}

/// A server's session with one client: one connection.
#[derive(Debug)]
pub struct Session<T = TcpStream>(pub(crate) Server<T>);

impl<T: Tcp> Session<T> {
    /// The protocol that the client speaks, or `None` while that is unknown. It is known after the first
    /// [`Self::recv`].
    pub const fn peer(&self) -> Option<Peer> {
        self.0.peer()
    }

    /// The client's address.
    pub const fn from(&self) -> SocketAddr {
        self.0.from()
    }

    /// The server that this one had redirected the client to and where nobody answered. It is known after the first
    /// [`Self::recv`], and should not be chosen again at once.
    pub const fn fell_back_from(&self) -> Option<SocketAddr> {
        self.0.fell_back_from()
    }

    /// The TCP connection.
    pub const fn tcp(&self) -> &T {
        self.0.tcp()
    }
}

impl Session<TcpStream> {
    /// Receives the next request, or bytes of a plain client; `None` if the client has ended the session.
    ///
    /// # Errors
    /// [`Error::Session`], [`Error::Protocol`], [`Error::Io`]: the session must be dropped.
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

    /// Sends an answer as [`Self::send`] does, but without a copy.
    ///
    /// # Errors
    /// The errors of [`Self::send`].
    pub fn send_message(&mut self, message: &mut Message) -> Result<(), Error> {
        self.send_outgoing(message.outgoing())
    }

    /// Sends the client to `target`, after it has got `answer`, if there is one. This end of the session is over at
    /// once: what the client still sends is for the other server.
    ///
    /// # Errors
    /// [`Error::Plain`] if the client is plain, and then it must be served here: [`Self::can_redirect`] tells
    /// beforehand. [`Error::TooLong`], [`Error::Io`].
    pub fn redirect(mut self, answer: Option<&[u8]>, target: SocketAddr) -> Result<(), Error> {
        self.until_done(Server::settled)?;
        self.0.redirect(answer, target)?;
        self.until_done(Server::flush)?;
        self.0.leave();
        Ok(())
    }

    /// Whether the client can be redirected. Waits for the client's first bytes for at most
    /// [`ServerOptions::patience`], if the client may be plain or not and has sent nothing yet.
    ///
    /// # Errors
    /// [`Error::Session`], [`Error::Protocol`], [`Error::Io`]: the session must be dropped.
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
    // Whatever ends the wait, the caller makes its call again, which sees what has happened.
    match poll(&mut [PollFd::new(stream.as_fd(), what)], timeout) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(Error::io("waiting")(error.into())),
    }
}
