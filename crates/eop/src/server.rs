//! The server's end, with calls that wait.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Instant, SystemTime};

use baton_core::eop::{Heard, Server, ServerOptions as SessionOptions};
use baton_wire::Clock;
use baton_wire::eop::{Head, MAGIC};
use socket2::{Domain, Socket, Type};

use crate::{Error, Peer, ServerOptions, Speak, inbox::Inbox, linger::linger, stream::Stream, ulp};

/// Where clients come.
#[derive(Debug)]
pub struct Listener {
    options: ServerOptions,
    listener: TcpListener,
    announced: bool,
}

/// A client's connection.
#[derive(Debug)]
pub struct Session {
    options: ServerOptions,
    server: Server,
    stream: Stream,
    inbox: Inbox,
    /// `None` while it may be either.
    peer: Option<Peer>,
    from: SocketAddr,
}

impl Listener {
    /// Listens.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn bind(at: SocketAddr, options: ServerOptions) -> Result<Self, Error> {
        Self::new(at, options).map_err(Error::io("listening"))
    }

    fn new(at: SocketAddr, options: ServerOptions) -> io::Result<Self> {
        const BACKLOG: i32 = 1024;
        let socket = Socket::new(Domain::for_address(at), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        if options.nodelay {
            // Accepted sockets have it from here.
            socket.set_tcp_nodelay(true)?;
        }
        let announced = options.speak == Speak::Either && ulp::announce(&socket);
        socket.bind(&at.into())?;
        socket.listen(BACKLOG)?;
        Ok(Self {
            options,
            listener: socket.into(),
            announced,
        })
    }

    /// The next client.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn accept(&self) -> Result<Session, Error> {
        let (stream, from) = self.listener.accept().map_err(Error::io("accepting"))?;
        let here = stream.local_addr().map_err(Error::io("accepting"))?;
        let peer = match self.options.speak {
            Speak::Eop => Some(Peer::Eop),
            Speak::Plain => Some(Peer::Plain),
            // No agreement says nothing yet: the client may be one that cannot announce.
            Speak::Either => (self.announced && ulp::agreed(&stream)).then_some(Peer::Eop),
        };
        let options = SessionOptions {
            key: self.options.key.clone(),
            redirected_only: self.options.redirected_only,
        };
        Ok(Session {
            server: Server::new(options, here, from),
            stream: Stream::accepted(stream),
            inbox: Inbox::new(self.options.limit),
            options: self.options.clone(),
            peer,
            from,
        })
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

impl Session {
    /// What the client speaks, if that is known: after the first [`Self::recv`] it is.
    pub const fn peer(&self) -> Option<Peer> {
        self.peer
    }

    /// The client's address.
    pub const fn from(&self) -> SocketAddr {
        self.from
    }

    /// Where this server had redirected the client to, and nobody answered. Known after the first
    /// [`Self::recv`]; not to be chosen again at once.
    pub const fn fell_back_from(&self) -> Option<SocketAddr> {
        self.server.fell_back_from()
    }

    /// The connection.
    pub const fn tcp(&self) -> &TcpStream {
        self.stream.tcp()
    }

    /// The next request, or bytes of a plain client; `None` when the client has ended the session.
    ///
    /// # Errors
    /// [`Error::Session`], [`Error::Protocol`], [`Error::Io`]: drop the session.
    pub fn recv(&mut self) -> Result<Option<&[u8]>, Error> {
        loop {
            match self.peer {
                None => {
                    self.peer = recognize(self.inbox.waiting());
                    if self.peer.is_some() {
                        continue;
                    }
                }
                Some(Peer::Plain) => {
                    let all = self.inbox.all();
                    if !all.is_empty() {
                        return Ok(Some(self.inbox.at(all)));
                    }
                }
                Some(Peer::Eop) => {
                    if let Some((head, range)) = self.inbox.message()? {
                        match self.server.handle_message(&head, now_for(&head))? {
                            Heard::Deliver => return Ok(Some(self.inbox.at(range))),
                            Heard::Probe => self.write(&Head::Welcome.bytes(0), &[])?,
                            Heard::Nothing => {}
                        }
                        continue;
                    }
                }
            }
            let more = self.stream.read(&mut self.inbox);
            if !more.map_err(Error::io("receiving"))? {
                return self.end();
            }
        }
    }

    /// Sends an answer: one message, or bytes to a plain client.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::Io`].
    pub fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        self.settle()?;
        if self.peer == Some(Peer::Plain) {
            return self.write(message, &[]);
        }
        let slen = slen(message)?;
        let head = self.server.handle_send(slen)?;
        self.write(&head, message)
    }

    /// Sends the client to `target`; first delivers `answer`, if there is one. This end is over at once, and
    /// what the client still sends is for the other server.
    ///
    /// # Errors
    /// [`Error::Plain`]: such a client must be served here; ask
    /// [`Self::can_redirect`] beforehand. [`Error::TooLong`], [`Error::Io`].
    pub fn redirect(mut self, answer: Option<&[u8]>, target: SocketAddr) -> Result<(), Error> {
        if !self.can_redirect()? {
            return Err(Error::Plain { peer: self.from });
        }
        let slen = answer.map(slen).transpose()?;
        let head = self.server.handle_redirect(slen, target, now())?;
        self.write(&head, answer.unwrap_or_default())?;
        linger(self.stream.into_tcp());
        Ok(())
    }

    /// Whether the client can be redirected. If it may be of either kind and has said nothing, waits for
    /// its first bytes for [`ServerOptions::patience`].
    ///
    /// # Errors
    /// [`Error::Session`], [`Error::Protocol`], [`Error::Io`]: drop the session.
    pub fn can_redirect(&mut self) -> Result<bool, Error> {
        self.settle()?;
        Ok(self.peer == Some(Peer::Eop))
    }

    /// Finds out what the client speaks before it is spoken to.
    fn settle(&mut self) -> Result<(), Error> {
        if self.peer.is_some() {
            return Ok(());
        }
        let deadline = Instant::now() + self.options.patience;
        while self.peer.is_none() {
            self.peer = recognize(self.inbox.waiting());
            if self.peer == Some(Peer::Eop) {
                return self.greet();
            }
            if self.peer.is_some() {
                break;
            }
            let more = self.stream.read_until(&mut self.inbox, deadline);
            if more.map_err(Error::io("receiving"))? != Some(true) {
                self.peer = Some(Peer::Plain);
            }
        }
        Ok(())
    }

    /// Hears the HELLO that has begun to come, before anything is sent.
    fn greet(&mut self) -> Result<(), Error> {
        loop {
            if let Some((head, _)) = self.inbox.message()? {
                if self.server.handle_message(&head, now_for(&head))? == Heard::Probe {
                    self.write(&Head::Welcome.bytes(0), &[])?;
                }
                return Ok(());
            }
            let more = self.stream.read(&mut self.inbox);
            if !more.map_err(Error::io("receiving"))? {
                return Err(baton_wire::eop::Error::CutOff.into());
            }
        }
    }

    fn end(&mut self) -> Result<Option<&[u8]>, Error> {
        let rest = self.inbox.waiting();
        match self.peer {
            Some(Peer::Eop) if !rest.is_empty() => Err(baton_wire::eop::Error::CutOff.into()),
            // It began as HELLO does, and was none.
            None if !rest.is_empty() => {
                self.peer = Some(Peer::Plain);
                let all = self.inbox.all();
                Ok(Some(self.inbox.at(all)))
            }
            _ => Ok(None),
        }
    }

    fn write(&mut self, head: &[u8], message: &[u8]) -> Result<(), Error> {
        self.stream
            .write(head, message)
            .map_err(Error::io("sending"))
    }
}

/// What a client speaks whose first bytes are these; `None`: not enough of them.
fn recognize(first: &[u8]) -> Option<Peer> {
    let compared = first.len().min(MAGIC.len());
    if first[..compared] != MAGIC[..compared] {
        Some(Peer::Plain)
    } else if compared == MAGIC.len() {
        Some(Peer::Eop)
    } else {
        None
    }
}

fn slen(message: &[u8]) -> Result<u32, Error> {
    u32::try_from(message.len()).map_err(|_| Error::TooLong {
        bytes: message.len(),
    })
}

/// Only a token wants to know the time, and asking costs.
fn now_for(head: &Head) -> Clock {
    match head {
        Head::Hello(_) => now(),
        _ => Clock::from_nanos(0),
    }
}

fn now() -> Clock {
    Clock::from(SystemTime::now())
}
