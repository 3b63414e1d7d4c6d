//! The sockets for a runtime of tokio, which must have I/O and time enabled.
//!
//! They do what the sockets in the crate's root do, by the same code; only the waiting differs. Every call may be given
//! up while it waits (`select!`, a timeout): the next call sends what was to be sent, and finds what has arrived.
//!
//! ```no_run
//! # async fn example() -> Result<(), eop::Error> {
//! let mut socket = eop::tokio::connect("10.0.0.1:80".parse().unwrap(), eop::Options::default()).await?;
//! socket.send(b"request").await?;
//! let response = socket.recv().await?.map(<[u8]>::to_vec);
//! # Ok(())
//! # }
//! ```

use std::io;
use std::net::SocketAddr;
use std::task::Poll;

use ::tokio::io::Interest;
use ::tokio::net::{TcpListener, TcpStream};
use ::tokio::time::timeout_at;

use crate::driver::{Client, Server, Tcp, Until, Wait, listen};
use crate::{Error, Message, Options, Outgoing, ServerOptions};

/// The same as [`crate::Socket`], on tokio.
pub type Socket = crate::Socket<TcpStream>;

/// Does the same as [`crate::connect`].
///
/// # Errors
/// Returns the errors of [`crate::connect`].
pub async fn connect(server: SocketAddr, options: Options) -> Result<Socket, Error> {
    let mut socket = crate::Socket(Client::connect(server, options)?);
    socket.until_done(Client::connected).await?;
    Ok(socket)
}

impl crate::Socket<TcpStream> {
    /// Does the same as [`crate::Socket::send`].
    /// If the future is dropped before it is done, the message is sent whole or not at all.
    ///
    /// # Errors
    /// Returns the errors of [`crate::Socket::send`].
    pub async fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        self.send_outgoing(Outgoing::of(message)).await
    }

    /// Does the same as [`crate::Socket::send_message`].
    ///
    /// # Errors
    /// Returns the errors of [`crate::Socket::send_message`].
    pub async fn send_message(&mut self, message: &mut Message) -> Result<(), Error> {
        self.send_outgoing(message.outgoing()).await
    }

    /// Does the same as [`crate::Socket::recv`].
    ///
    /// # Errors
    /// Returns the errors of [`crate::Socket::recv`].
    pub async fn recv(&mut self) -> Result<Option<&[u8]>, Error> {
        let range = self.until_done(Client::recv).await?;
        Ok(range.map(|range| self.0.at(range)))
    }

    /// Takes a socket apart that was just connected, for code that carries on the session itself: into the connection,
    /// the client's state, and the bytes that have arrived already.
    pub fn into_parts(self) -> (TcpStream, eop_protocol::Client, Vec<u8>) {
        self.0.into_parts()
    }

    async fn send_outgoing(&mut self, message: Outgoing<'_>) -> Result<(), Error> {
        self.until_done(Client::connected).await?;
        self.0.send(message)?;
        self.until_done(Client::flush).await
    }

    async fn until_done<R>(
        &mut self,
        mut call: impl FnMut(&mut Client<TcpStream>) -> Poll<Result<R, Error>>,
    ) -> Result<R, Error> {
        loop {
            if let Poll::Ready(done) = call(&mut self.0) {
                return done;
            }
            wait(self.0.tcp(), self.0.wait()).await?;
        }
    }
}

/// The same as [`crate::Listener`], on tokio.
#[derive(Debug)]
pub struct Listener {
    options: ServerOptions,
    listener: TcpListener,
    announced: bool,
}

impl Listener {
    /// Does the same as [`crate::Listener::bind`].
    ///
    /// # Errors
    /// Returns the errors of [`crate::Listener::bind`].
    pub fn bind(at: SocketAddr, options: ServerOptions) -> Result<Self, Error> {
        let (listener, announced) = listen(at, &options)?;
        let listener = listener
            .set_nonblocking(true)
            .and_then(|()| TcpListener::from_std(listener));
        Ok(Self {
            options,
            listener: listener.map_err(Error::io("listening"))?,
            announced,
        })
    }

    /// Does the same as [`crate::Listener::accept`].
    ///
    /// # Errors
    /// Returns the errors of [`crate::Listener::accept`].
    pub async fn accept(&self) -> Result<Session, Error> {
        let accepted = self.listener.accept().await;
        let (stream, from) = accepted.map_err(Error::io("accepting"))?;
        Server::new(stream, from, self.announced, &self.options).map(crate::Session)
    }

    /// Does the same as [`crate::Listener::local_addr`].
    ///
    /// # Errors
    /// Returns the errors of [`crate::Listener::local_addr`].
    pub fn local_addr(&self) -> Result<SocketAddr, Error> {
        self.listener
            .local_addr()
            .map_err(Error::io("asking for the local address"))
    }

    /// Does the same as [`crate::Listener::tcp`].
    pub const fn tcp(&self) -> &TcpListener {
        &self.listener
    }
}

/// The same as [`crate::Session`], on tokio.
pub type Session = crate::Session<TcpStream>;

impl crate::Session<TcpStream> {
    /// Does the same as [`crate::Session::recv`].
    ///
    /// # Errors
    /// Returns the errors of [`crate::Session::recv`].
    pub async fn recv(&mut self) -> Result<Option<&[u8]>, Error> {
        let range = self.until_done(Server::recv).await?;
        Ok(range.map(|range| self.0.at(range)))
    }

    /// Does the same as [`crate::Session::send`].
    /// If the future is dropped before it is done, the message is sent whole or not at all.
    ///
    /// # Errors
    /// Returns the errors of [`crate::Session::send`].
    pub async fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        self.send_outgoing(Outgoing::of(message)).await
    }

    /// Does the same as [`crate::Session::send_message`].
    ///
    /// # Errors
    /// Returns the errors of [`crate::Session::send_message`].
    pub async fn send_message(&mut self, message: &mut Message) -> Result<(), Error> {
        self.send_outgoing(message.outgoing()).await
    }

    /// Does the same as [`crate::Session::redirect`]. If the future is dropped before it is done, the session is lost.
    ///
    /// # Errors
    /// Returns the errors of [`crate::Session::redirect`].
    pub async fn redirect(
        mut self,
        answer: Option<&[u8]>,
        target: SocketAddr,
    ) -> Result<(), Error> {
        self.until_done(Server::settled).await?;
        self.0.redirect(answer, target)?;
        self.until_done(Server::flush).await?;
        self.0.leave();
        Ok(())
    }

    /// Does the same as [`crate::Session::can_redirect`].
    ///
    /// # Errors
    /// Returns the errors of [`crate::Session::can_redirect`].
    pub async fn can_redirect(&mut self) -> Result<bool, Error> {
        self.until_done(Server::settled).await?;
        Ok(self.0.can_redirect())
    }

    async fn send_outgoing(&mut self, message: Outgoing<'_>) -> Result<(), Error> {
        self.until_done(Server::settled).await?;
        self.0.send(message)?;
        self.until_done(Server::flush).await
    }

    async fn until_done<R>(
        &mut self,
        mut call: impl FnMut(&mut Server<TcpStream>) -> Poll<Result<R, Error>>,
    ) -> Result<R, Error> {
        loop {
            if let Poll::Ready(done) = call(&mut self.0) {
                return done;
            }
            wait(self.0.tcp(), self.0.wait()).await?;
        }
    }
}

impl Tcp for TcpStream {
    const RETURNS: bool = true;

    fn connecting(stream: std::net::TcpStream) -> io::Result<Self> {
        Self::from_std(stream)
    }

    fn connected(&self) -> io::Result<()> {
        Ok(())
    }

    fn into_std(self) -> io::Result<std::net::TcpStream> {
        Self::into_std(self)
    }

    fn call<R>(&self, until: Until, call: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        self.try_io(interest(until), call)
    }
}

fn interest(until: Until) -> Interest {
    match until {
        Until::Readable => Interest::READABLE,
        Until::Writable => Interest::WRITABLE,
    }
}

async fn wait(stream: &TcpStream, wait: Wait) -> Result<(), Error> {
    let ready = stream.ready(interest(wait.until));
    // Whatever ends the wait, the caller makes its call again, which sees what has happened.
    let ready = match wait.deadline {
        Some(deadline) => timeout_at(deadline.into(), ready).await,
        None => Ok(ready.await),
    };
    match ready {
        Ok(Err(error)) => Err(Error::io("waiting")(error)),
        _ => Ok(()),
    }
}
