//! The client's end of a session over connections.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::task::{Poll, ready};
use std::time::Instant;

use eop_protocol::wire::Head;
use eop_protocol::{Client as Machine, ClientOptions, NotAllowed, Verdict};

use super::{Tcp, Wait, inbox::Inbox, known, stream::Stream, ulp, ulp::Handshake};
use crate::{Error, Options, Outgoing, Peer, Speak};

/// A client's session, with the server that it is redirected to as well.
#[derive(Debug)]
pub(crate) struct Client<T> {
    options: Options,
    /// The protocol that the server speaks, valid once the session is connected.
    peer: Peer,
    machine: Machine,
    stream: Stream<T>,
    state: State,
    inbox: Inbox,
    /// How many requests the application must send again. It must be told before anything else is sent.
    redo: usize,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The connection to the first server is being made.
    Connecting,
    /// The server was asked whether it speaks EOP, and may answer until this time.
    Asking(Instant),
    /// A new connection is being made to a server that was found to be plain.
    ConnectingPlain,
    /// The connection to the server of a redirect is being made.
    Moving,
    Connected,
}

impl<T: Tcp> Client<T> {
    /// Begins to connect.
    pub fn connect(server: SocketAddr, options: Options) -> Result<Self, Error> {
        let either = options.speak == Speak::Either;
        let machine = ClientOptions {
            resend: options.resend,
            idempotent: options.idempotent,
            hops: options.hops,
            allow: options.allow.clone(),
            probe: either,
        };
        // Only EOP lets this end speak first for sure: a plain server may be one that speaks first.
        let speaks = options.speak == Speak::Eop;
        Ok(Self {
            stream: connect(server, &options, either, speaks)?,
            machine: Machine::new(machine, server),
            inbox: Inbox::new(options.limit),
            peer: Peer::Eop,
            state: State::Connecting,
            redo: 0,
            options,
        })
    }

    pub const fn peer(&self) -> Peer {
        self.peer
    }

    pub const fn server(&self) -> SocketAddr {
        self.machine.target()
    }

    pub const fn not_allowed(&self) -> Option<NotAllowed> {
        self.machine.not_allowed()
    }

    pub const fn tcp(&self) -> &T {
        self.stream.tcp()
    }

    /// Takes the session apart, once it is connected: into its connection, its state, and what has arrived and was not
    /// received.
    #[cfg(feature = "tokio")]
    pub fn into_parts(self) -> (T, Machine, Vec<u8>) {
        let arrived = self.inbox.waiting().to_vec();
        (self.stream.into_tcp(), self.machine, arrived)
    }

    pub const fn wait(&self) -> Wait {
        self.stream.wait()
    }

    /// The bytes of a message that [`Self::recv`] found.
    pub fn at(&self, range: Range<usize>) -> &[u8] {
        self.inbox.at(range)
    }

    /// Is ready when the session is connected to its server and [`Self::send`] may be called. What this end says first
    /// on a connection leaves with the bytes that follow.
    #[inline]
    pub fn connected(&mut self) -> Poll<Result<(), Error>> {
        match self.state {
            State::Connected => Poll::Ready(Ok(())),
            _ => self.connect_on(),
        }
    }

    #[cold]
    fn connect_on(&mut self) -> Poll<Result<(), Error>> {
        loop {
            match self.state {
                State::Connected => return Poll::Ready(Ok(())),
                State::Connecting => {
                    ready!(self.stream.finish()).map_err(Error::io("connecting"))?;
                    self.first_connected();
                }
                State::Asking(deadline) => {
                    self.state = State::Connected;
                    if !ready!(self.asked(deadline))? {
                        let server = self.machine.target();
                        known::found_plain(server);
                        self.peer = Peer::Plain;
                        self.inbox = Inbox::new(self.options.limit);
                        self.stream = connect(server, &self.options, false, false)?;
                        self.state = State::ConnectingPlain;
                    }
                }
                State::ConnectingPlain => {
                    ready!(self.stream.finish()).map_err(Error::io("connecting"))?;
                    self.state = State::Connected;
                }
                State::Moving => {
                    if ready!(self.stream.finish()).is_ok() {
                        self.open();
                    } else {
                        self.machine.handle_unreachable()?;
                        self.move_on()?;
                    }
                }
            }
        }
    }

    /// Sends a request: one message, or bytes to a plain server. [`Self::flush`] sends what cannot leave at once.
    #[inline]
    pub fn send(&mut self, message: Outgoing<'_>) -> Result<(), Error> {
        if self.peer == Peer::Plain {
            let written = self.stream.write(&[], message.body());
            return written.map_err(Error::io("sending"));
        }
        self.tell_redo()?;
        let header = Head::normal(message.slen()?);
        self.machine.handle_send(message.body())?;
        let (head, rest) = message.behind(&header);
        // An error is reported when receiving, because a REDIRECT may have arrived before the end.
        let _ = self.stream.write(head, rest);
        Ok(())
    }

    /// Is ready when all is sent.
    #[inline]
    pub fn flush(&mut self) -> Poll<Result<(), Error>> {
        match ready!(self.stream.flush()) {
            Err(error) if self.peer == Peer::Plain => Poll::Ready(Err(Error::io("sending")(error))),
            // Errors are reported when receiving, as in `send`.
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Is ready with the next message of the server, or with bytes of a plain one.
    #[inline]
    pub fn recv(&mut self) -> Poll<Result<Option<Range<usize>>, Error>> {
        if self.peer == Peer::Plain {
            return self.recv_plain();
        }
        self.tell_redo()?;
        loop {
            ready!(self.connected())?;
            if let Some(range) = self.inbox.normal() {
                self.machine.handle_message(&Head::Normal)?;
                return Poll::Ready(Ok(Some(range)));
            }
            if let Some((head, range)) = self.inbox.message()? {
                match self.machine.handle_message(&head)? {
                    Verdict::Deliver => return Poll::Ready(Ok(Some(range))),
                    Verdict::DeliverAndMove { redo } => {
                        self.redo = redo;
                        self.move_on()?;
                        return Poll::Ready(Ok(Some(range)));
                    }
                    Verdict::Move => self.move_on()?,
                    Verdict::Redo { unanswered } => {
                        self.move_on()?;
                        return Poll::Ready(Err(Error::Redo { unanswered }));
                    }
                    Verdict::Nothing => {}
                }
                continue;
            }
            match ready!(self.stream.read(&mut self.inbox)) {
                Ok(true) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // The application has set a timeout on the socket.
                    return Poll::Ready(Err(Error::io("receiving")(error)));
                }
                Ok(false) | Err(_) => {
                    if !self.machine.handle_lost()? {
                        return Poll::Ready(Ok(None));
                    }
                    self.move_on()?;
                }
            }
        }
    }

    #[cold]
    fn recv_plain(&mut self) -> Poll<Result<Option<Range<usize>>, Error>> {
        if self.inbox.waiting().is_empty() {
            let more = ready!(self.stream.read(&mut self.inbox));
            if !more.map_err(Error::io("receiving"))? {
                return Poll::Ready(Ok(None));
            }
        }
        Poll::Ready(Ok(Some(self.inbox.all())))
    }

    #[inline]
    fn tell_redo(&mut self) -> Result<(), Error> {
        match std::mem::take(&mut self.redo) {
            0 => Ok(()),
            unanswered => Err(Error::Redo { unanswered }),
        }
    }

    /// Decides which protocol the server speaks, or asks the server.
    #[cold]
    fn first_connected(&mut self) {
        let said = self.stream.announced;
        let said = said.then(|| ulp::handshake(self.stream.tcp()));
        self.peer = match (self.options.speak, said) {
            (Speak::Eop, _) | (_, Some(Handshake::Agreed)) => Peer::Eop,
            (Speak::Plain, _) | (_, Some(Handshake::Plain)) => Peer::Plain,
            _ if known::is_plain(self.server()) => Peer::Plain,
            _ => {
                self.open();
                self.state = State::Asking(Instant::now() + self.options.patience);
                return;
            }
        };
        // There is nothing to say first: no probe, and no request yet.
        self.machine.handle_connected();
        self.state = State::Connected;
    }

    fn asked(&mut self, deadline: Instant) -> Poll<Result<bool, Error>> {
        loop {
            match self.inbox.message() {
                Ok(Some((Head::Welcome, _))) => {
                    self.machine.handle_message(&Head::Welcome)?;
                    return Poll::Ready(Ok(true));
                }
                // The server answers, but not with a WELCOME.
                Ok(Some(_)) | Err(_) => return Poll::Ready(Ok(false)),
                Ok(None) => {}
            }
            match self.stream.read_until(&mut self.inbox, deadline) {
                Poll::Ready(Ok(Some(true))) => {}
                // The stream ended, the connection was reset, or the server was silent.
                Poll::Ready(_) => return Poll::Ready(Ok(false)),
                Poll::Pending => {
                    self.state = State::Asking(deadline);
                    return Poll::Pending;
                }
            }
        }
    }

    /// Begins to connect to the server that the session moves to. The old connection stays open for the moment.
    #[cold]
    fn move_on(&mut self) -> Result<(), Error> {
        self.inbox.forget();
        self.state = State::Moving;
        loop {
            match connect(self.machine.target(), &self.options, false, true) {
                Ok(stream) => {
                    let left = std::mem::replace(&mut self.stream, stream);
                    self.stream.close_then(left.into_tcp());
                    return Ok(());
                }
                Err(_) => self.machine.handle_unreachable()?,
            }
        }
    }

    fn open(&mut self) {
        self.state = State::Connected;
        let opening = self.machine.handle_connected();
        if let Some(hello) = opening.hello {
            self.stream.put(&Head::Hello(hello).bytes(0));
        }
        for message in opening.again {
            // The message was sent before, so its length fits.
            self.stream.put(&Head::normal(message.len() as u32));
            self.stream.put(message);
        }
    }
}

fn connect<T: Tcp>(
    server: SocketAddr,
    options: &Options,
    announce: bool,
    speaks: bool,
) -> Result<Stream<T>, Error> {
    let (timeout, nodelay) = (options.connect_timeout, options.nodelay);
    Stream::connect(server, timeout, nodelay, announce, speaks).map_err(Error::io("connecting"))
}
