//! The same sockets on a runtime of tokio, with I/O and time enabled.
//!
//! They do what those of the crate's root do, by the same code, and differ in who waits. Every call may be given up
//! while it waits (`select!`, a timeout): what it was to send the next call sends, what has come the next
//! call finds.
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
use eop_protocol::NotAllowed;

use crate::driver::{Client, Server, Tcp, Until, Wait, listen};
use crate::{Error, Message, Options, Outgoing, Peer, ServerOptions};

/// As [`crate::Socket`].
#[derive(Debug)]
pub struct Socket(Client<TcpStream>);

/// As [`crate::connect`].
///
/// # Errors
/// As there.
pub async fn connect(server: SocketAddr, options: Options) -> Result<Socket, Error> {
    let mut socket = Socket(Client::connect(server, options)?);
    socket.until_done(Client::connected).await?;
    Ok(socket)
}

impl Socket {
    /// As [`crate::Socket::peer`].
    pub const fn peer(&self) -> Peer {
        self.0.peer()
    }

    /// As [`crate::Socket::server`].
    pub const fn server(&self) -> SocketAddr {
        self.0.server()
    }

    /// As [`crate::Socket::not_allowed`].
    pub const fn not_allowed(&self) -> Option<NotAllowed> {
        self.0.not_allowed()
    }

    /// As [`crate::Socket::tcp`].
    pub const fn tcp(&self) -> &TcpStream {
        self.0.tcp()
    }

    /// As [`crate::Socket::send`]. Given up before it is done, the message is sent whole if any of it is.
    ///
    /// # Errors
    /// As there.
    pub async fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        self.send_outgoing(Outgoing::of(message)).await
    }

    /// As [`crate::Socket::send_message`].
    ///
    /// # Errors
    /// As there.
    pub async fn send_message(&mut self, message: &mut Message) -> Result<(), Error> {
        self.send_outgoing(message.outgoing()).await
    }

    /// As [`crate::Socket::recv`].
    ///
    /// # Errors
    /// As there.
    pub async fn recv(&mut self) -> Result<Option<&[u8]>, Error> {
        let range = self.until_done(Client::recv).await?;
        Ok(range.map(|range| self.0.at(range)))
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

/// As [`crate::Listener`].
#[derive(Debug)]
pub struct Listener {
    options: ServerOptions,
    listener: TcpListener,
    announced: bool,
}

impl Listener {
    /// As [`crate::Listener::bind`].
    ///
    /// # Errors
    /// As there.
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

    /// As [`crate::Listener::accept`].
    ///
    /// # Errors
    /// As there.
    pub async fn accept(&self) -> Result<Session, Error> {
        let accepted = self.listener.accept().await;
        let (stream, from) = accepted.map_err(Error::io("accepting"))?;
        Server::new(stream, from, self.announced, &self.options).map(Session)
    }

    /// As [`crate::Listener::local_addr`].
    ///
    /// # Errors
    /// As there.
    pub fn local_addr(&self) -> Result<SocketAddr, Error> {
        self.listener
            .local_addr()
            .map_err(Error::io("asking for the local address"))
    }

    /// As [`crate::Listener::tcp`].
    pub const fn tcp(&self) -> &TcpListener {
        &self.listener
    }
}

/// As [`crate::Session`].
#[derive(Debug)]
pub struct Session(Server<TcpStream>);

impl Session {
    /// As [`crate::Session::peer`].
    pub const fn peer(&self) -> Option<Peer> {
        self.0.peer()
    }

    /// As [`crate::Session::from`].
    pub const fn from(&self) -> SocketAddr {
        self.0.from()
    }

    /// As [`crate::Session::fell_back_from`].
    pub const fn fell_back_from(&self) -> Option<SocketAddr> {
        self.0.fell_back_from()
    }

    /// As [`crate::Session::tcp`].
    pub const fn tcp(&self) -> &TcpStream {
        self.0.tcp()
    }

    /// As [`crate::Session::recv`].
    ///
    /// # Errors
    /// As there.
    pub async fn recv(&mut self) -> Result<Option<&[u8]>, Error> {
        let range = self.until_done(Server::recv).await?;
        Ok(range.map(|range| self.0.at(range)))
    }

    /// As [`crate::Session::send`]. Given up before it is done, the message is sent whole if any of it is.
    ///
    /// # Errors
    /// As there.
    pub async fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        self.send_outgoing(Outgoing::of(message)).await
    }

    /// As [`crate::Session::send_message`].
    ///
    /// # Errors
    /// As there.
    pub async fn send_message(&mut self, message: &mut Message) -> Result<(), Error> {
        self.send_outgoing(message.outgoing()).await
    }

    /// As [`crate::Session::redirect`]. Given up before it is done, the session is lost.
    ///
    /// # Errors
    /// As there.
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

    /// As [`crate::Session::can_redirect`].
    ///
    /// # Errors
    /// As there.
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
    // Whatever ends it, the call that waited is made again, and sees.
    let ready = match wait.deadline {
        Some(deadline) => timeout_at(deadline.into(), ready).await,
        None => Ok(ready.await),
    };
    match ready {
        Ok(Err(error)) => Err(Error::io("waiting")(error)),
        _ => Ok(()),
    }
}
