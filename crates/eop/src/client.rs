//! The client's end, with calls that wait.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use baton_core::eop::{Client, ClientOptions, NotAllowed, Verdict};
use baton_wire::eop::Head;

use crate::{Error, Options, Peer, Speak, inbox::Inbox, known, stream::Stream, ulp};

/// A session with whichever server it is at.
#[derive(Debug)]
pub struct Socket {
    options: Options,
    peer: Peer,
    client: Client,
    stream: Stream,
    /// What to say first where it moves to has not been said.
    opening: bool,
    /// The connection it moved away from. It is closed when the next server is at work.
    left: Option<TcpStream>,
    inbox: Inbox,
    /// To be told before anything is sent.
    redo: usize,
}

/// Connects to a server, and finds out what it speaks if it was not told.
///
/// # Errors
/// [`Error::Io`]: no connection. [`Error::Session`].
pub fn connect(server: SocketAddr, options: Options) -> Result<Socket, Error> {
    Socket::connect(server, options)
}

impl Socket {
    fn connect(server: SocketAddr, options: Options) -> Result<Self, Error> {
        let either = options.speak == Speak::Either;
        let mut stream = Stream::connect(server, options.connect_timeout, options.nodelay, either)
            .and_then(|mut stream| stream.finish().map(|()| stream))
            .map_err(Error::io("connecting"))?;
        let mut inbox = Inbox::new(options.limit);
        let mut client = Client::new(
            ClientOptions {
                resend: options.resend,
                idempotent: options.idempotent,
                hops: options.hops,
                allow: options.allow.clone(),
                probe: either,
            },
            server,
        );
        let peer = match options.speak {
            Speak::Eop => Peer::Eop,
            Speak::Plain => Peer::Plain,
            Speak::Either if stream.announced && ulp::agreed(stream.tcp()) => Peer::Eop,
            Speak::Either if stream.announced || known::is_plain(server) => Peer::Plain,
            Speak::Either => {
                if ask(&mut stream, &mut inbox, &mut client, &options)? {
                    Peer::Eop
                } else {
                    known::found_plain(server);
                    inbox = Inbox::new(options.limit);
                    stream =
                        Stream::connect(server, options.connect_timeout, options.nodelay, false)
                            .and_then(|mut stream| stream.finish().map(|()| stream))
                            .map_err(Error::io("connecting"))?;
                    Peer::Plain
                }
            }
        };
        if client.is_moving() {
            // Nothing is to be said: no probe, and no request yet.
            client.handle_connected();
        }
        Ok(Self {
            options,
            peer,
            client,
            stream,
            opening: false,
            left: None,
            inbox,
            redo: 0,
        })
    }

    /// What the server speaks.
    pub const fn peer(&self) -> Peer {
        self.peer
    }

    /// The server that it is at, or on its way to.
    pub const fn server(&self) -> SocketAddr {
        self.client.target()
    }

    /// The last redirect that was not followed because of [`Options::allow`].
    pub const fn not_allowed(&self) -> Option<NotAllowed> {
        self.client.not_allowed()
    }

    /// The connection; another one after each redirect.
    pub const fn tcp(&self) -> &TcpStream {
        self.stream.tcp()
    }

    /// Sends a request: one message, or bytes to a plain server. If the connection turns out to be gone,
    /// [`Self::recv`] says so, which may find a redirect on it.
    ///
    /// # Errors
    /// [`Error::Redo`]: requests before this one must be sent again first. [`Error::Session`],
    /// [`Error::TooLong`], [`Error::Io`].
    pub fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        if self.peer == Peer::Plain {
            return self
                .stream
                .write(message, &[])
                .map_err(Error::io("sending"));
        }
        self.tell_redo()?;
        let slen = u32::try_from(message.len()).map_err(|_| Error::TooLong {
            bytes: message.len(),
        })?;
        loop {
            self.settle_opening()?;
            if !self.opening {
                break;
            }
            // Nothing goes before this message on the new connection: one write makes it and asks.
            match self.stream.write(&Head::normal(slen), message) {
                Ok(()) => {
                    self.opening = false;
                    self.client.handle_connected();
                    self.client.handle_send(message)?;
                    self.left = None;
                    return Ok(());
                }
                Err(_) => self.unreachable()?,
            }
        }
        self.client.handle_send(message)?;
        // What is wrong shows when receiving: a REDIRECT may have come before the end.
        let _ = self.stream.write(&Head::normal(slen), message);
        Ok(())
    }

    /// The next message of the server, or bytes of a plain one; `None` when it has ended the session.
    ///
    /// # Errors
    /// [`Error::Redo`], unless the session does that itself. [`Error::Session`], [`Error::Protocol`],
    /// [`Error::Io`].
    pub fn recv(&mut self) -> Result<Option<&[u8]>, Error> {
        if self.peer == Peer::Plain {
            return self.recv_plain();
        }
        self.tell_redo()?;
        loop {
            self.establish()?;
            if let Some((head, range)) = self.inbox.message()? {
                match self.client.handle_message(&head)? {
                    Verdict::Deliver => return Ok(Some(self.inbox.at(range))),
                    Verdict::DeliverAndMove { redo } => {
                        self.redo = redo;
                        self.inbox.forget();
                        self.move_on()?;
                        return Ok(Some(self.inbox.at(range)));
                    }
                    Verdict::Move => self.move_on()?,
                    Verdict::Redo { unanswered } => {
                        self.move_on()?;
                        return Err(Error::Redo { unanswered });
                    }
                    Verdict::Nothing => {}
                }
                continue;
            }
            match self.stream.read(&mut self.inbox) {
                Ok(true) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // The application has set a timeout on the socket.
                    return Err(Error::io("receiving")(error));
                }
                Ok(false) | Err(_) => {
                    if !self.client.handle_lost()? {
                        return Ok(None);
                    }
                    self.move_on()?;
                }
            }
        }
    }

    fn recv_plain(&mut self) -> Result<Option<&[u8]>, Error> {
        if self.inbox.waiting().is_empty() {
            let more = self.stream.read(&mut self.inbox);
            if !more.map_err(Error::io("receiving"))? {
                return Ok(None);
            }
        }
        let all = self.inbox.all();
        Ok(Some(self.inbox.at(all)))
    }

    fn tell_redo(&mut self) -> Result<(), Error> {
        match std::mem::take(&mut self.redo) {
            0 => Ok(()),
            unanswered => Err(Error::Redo { unanswered }),
        }
    }

    /// Begins to connect to where the session moves, and lets go of nothing yet.
    fn move_on(&mut self) -> Result<(), Error> {
        self.inbox.forget();
        self.opening = true;
        loop {
            let to = self.client.target();
            match Stream::connect(
                to,
                self.options.connect_timeout,
                self.options.nodelay,
                false,
            ) {
                Ok(stream) => {
                    let left = std::mem::replace(&mut self.stream, stream);
                    self.left = Some(left.into_tcp());
                    return Ok(());
                }
                Err(_) => self.client.handle_unreachable()?,
            }
        }
    }

    /// On a new connection, says what must go first, if anything must; `opening` remains if nothing.
    fn settle_opening(&mut self) -> Result<(), Error> {
        if self.opening && self.client.must_open() {
            self.establish()?;
        }
        Ok(())
    }

    /// Waits until the session is connected, and has said what goes first there.
    fn establish(&mut self) -> Result<(), Error> {
        while self.opening {
            match self.stream.finish() {
                Ok(()) => {
                    self.opening = false;
                    let opening = self.client.handle_connected();
                    let mut bytes = opening
                        .hello
                        .map(|hello| Head::Hello(hello).bytes(0))
                        .unwrap_or_default();
                    for message in opening.again {
                        // It was sent before, so its length fits.
                        bytes.extend(Head::normal(message.len() as u32));
                        bytes.extend(message);
                    }
                    // As in `send`.
                    let _ = self.stream.write(&bytes, &[]);
                    self.left = None;
                }
                Err(_) => self.unreachable()?,
            }
        }
        Ok(())
    }

    fn unreachable(&mut self) -> Result<(), Error> {
        self.client.handle_unreachable()?;
        self.move_on()
    }
}

/// Asks a server whether it speaks EOP.
fn ask(
    stream: &mut Stream,
    inbox: &mut Inbox,
    client: &mut Client,
    options: &Options,
) -> Result<bool, Error> {
    let Some(hello) = client.handle_connected().hello else {
        return Ok(false);
    };
    if stream.write(&Head::Hello(hello).bytes(0), &[]).is_err() {
        return Ok(false);
    }
    let deadline = Instant::now() + options.patience;
    loop {
        match inbox.message() {
            Ok(Some((Head::Welcome, _))) => {
                client.handle_message(&Head::Welcome)?;
                return Ok(true);
            }
            // It speaks, but something else.
            Ok(Some(_)) | Err(_) => return Ok(false),
            Ok(None) => {}
        }
        match stream.read_until(inbox, deadline) {
            Ok(Some(true)) => {}
            // An end, a reset, or silence.
            Ok(Some(false) | None) | Err(_) => return Ok(false),
        }
    }
}
