//! The server's end of a session over a connection.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::ops::Range;
use std::task::{Poll, ready};
use std::time::{Instant, SystemTime};

use baton_wire::Clock;
use eop_protocol::wire::{Head, MAGIC};
use eop_protocol::{Heard, Server as Machine, ServerOptions as MachineOptions};
use socket2::{Domain, SockRef, Socket, Type};

use super::{Tcp, Wait, inbox::Inbox, linger::linger, stream::Stream, ulp, ulp::Handshake};
use crate::{Error, Outgoing, Peer, ServerOptions, Speak};

/// A server's session with one client.
#[derive(Debug)]
pub(crate) struct Server<T> {
    options: ServerOptions,
    machine: Machine,
    stream: Stream<T>,
    inbox: Inbox,
    /// The protocol that the client speaks; `None` while it may be either.
    peer: Option<Peer>,
    /// Whether the client has begun a HELLO, which shows that it speaks EOP, and the HELLO was not handled yet.
    hello_due: bool,
    /// The time until which this end waits for the first bytes of a client that may speak either; `None` if this end
    /// has not begun to wait.
    patience: Option<Instant>,
    from: SocketAddr,
}

/// Listens. Also returns whether handshakes announce that this end speaks EOP.
pub(crate) fn listen(
    at: SocketAddr,
    options: &ServerOptions,
) -> Result<(TcpListener, bool), Error> {
    try_listen(at, options).map_err(Error::io("listening"))
}

fn try_listen(at: SocketAddr, options: &ServerOptions) -> io::Result<(TcpListener, bool)> {
    const BACKLOG: i32 = 1024;
    let socket = Socket::new(Domain::for_address(at), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if options.nodelay {
        // Accepted sockets inherit this option.
        socket.set_tcp_nodelay(true)?;
    }
    let announced = options.speak == Speak::Either && ulp::announce(&socket);
    socket.bind(&at.into())?;
    socket.listen(BACKLOG)?;
    if options.speak == Speak::Eop {
        // Accepted sockets inherit this option, too: the answer then acknowledges the request. Only EOP allows that: a
        // plain client that sends a request in two parts, and waits with the second, must not be kept waiting.
        socket.set_tcp_quickack(false)?;
    }
    Ok((socket.into(), announced))
}

impl<T: Tcp> Server<T> {
    /// Makes the session of an accepted connection. `announced` says whether the listener announced EOP.
    pub fn new(
        tcp: T,
        from: SocketAddr,
        announced: bool,
        options: &ServerOptions,
    ) -> Result<Self, Error> {
        let here = SockRef::from(&tcp).local_addr();
        let here = here.map_err(Error::io("accepting"))?;
        let here = here.as_socket().ok_or(io::ErrorKind::Unsupported.into());
        let peer = match options.speak {
            Speak::Eop => Some(Peer::Eop),
            Speak::Plain => Some(Peer::Plain),
            // Without an agreement nothing is known yet: the client may be one that cannot announce.
            Speak::Either => {
                (announced && ulp::handshake(&tcp) == Handshake::Agreed).then_some(Peer::Eop)
            }
        };
        let machine = MachineOptions {
            key: options.key.clone(),
            redirected_only: options.redirected_only,
        };
        Ok(Self {
            machine: Machine::new(machine, here.map_err(Error::io("accepting"))?, from),
            stream: Stream::accepted(tcp),
            inbox: Inbox::new(options.limit),
            options: options.clone(),
            peer,
            hello_due: false,
            patience: None,
            from,
        })
    }

    pub const fn peer(&self) -> Option<Peer> {
        self.peer
    }

    pub const fn from(&self) -> SocketAddr {
        self.from
    }

    pub const fn fell_back_from(&self) -> Option<SocketAddr> {
        self.machine.fell_back_from()
    }

    pub const fn tcp(&self) -> &T {
        self.stream.tcp()
    }

    pub const fn wait(&self) -> Wait {
        self.stream.wait()
    }

    /// The bytes of a message that [`Self::recv`] found.
    pub fn at(&self, range: Range<usize>) -> &[u8] {
        self.inbox.at(range)
    }

    /// Is ready with the next request, or with bytes of a plain client.
    #[inline]
    pub fn recv(&mut self) -> Poll<Result<Option<Range<usize>>, Error>> {
        loop {
            match self.peer {
                None => {
                    if self.recognized() {
                        continue;
                    }
                }
                Some(Peer::Plain) => {
                    let all = self.inbox.all();
                    if !all.is_empty() {
                        return Poll::Ready(Ok(Some(all)));
                    }
                }
                Some(Peer::Eop) => {
                    if let Some(range) = self.inbox.normal() {
                        if self.heard(&Head::Normal)? {
                            return Poll::Ready(Ok(Some(range)));
                        }
                        continue;
                    }
                    if let Some((head, range)) = self.inbox.message()? {
                        if self.heard(&head)? {
                            return Poll::Ready(Ok(Some(range)));
                        }
                        continue;
                    }
                }
            }
            let more = ready!(self.stream.read(&mut self.inbox));
            if !more.map_err(Error::io("receiving"))? {
                return Poll::Ready(self.end());
            }
        }
    }

    /// Is ready when the client's protocol is known and [`Self::send`] may be called. A client that is silent for
    /// [`ServerOptions::patience`] counts as plain.
    #[inline]
    pub fn settled(&mut self) -> Poll<Result<(), Error>> {
        if self.peer.is_some() && !self.hello_due {
            return Poll::Ready(Ok(()));
        }
        self.introduced()
    }

    /// Sends an answer: one message, or bytes to a plain client. [`Self::flush`] sends what cannot leave at once.
    #[inline]
    pub fn send(&mut self, message: Outgoing<'_>) -> Result<(), Error> {
        let written = if self.peer == Some(Peer::Plain) {
            self.stream.write(&[], message.body())
        } else {
            let header = self.machine.handle_send(message.slen()?)?;
            let (head, rest) = message.behind(&header);
            self.stream.write(head, rest)
        };
        written.map_err(Error::io("sending"))
    }

    /// Is ready when all is sent.
    #[inline]
    pub fn flush(&mut self) -> Poll<Result<(), Error>> {
        self.stream.flush().map_err(Error::io("sending"))
    }

    /// Sends the client to `target`, once the session is [settled](Self::settled). [`Self::flush`] and then
    /// [`Self::leave`] must follow.
    pub fn redirect(&mut self, answer: Option<&[u8]>, target: SocketAddr) -> Result<(), Error> {
        if !self.can_redirect() {
            return Err(Error::Plain { peer: self.from });
        }
        let slen = answer
            .map(|answer| Outgoing::of(answer).slen())
            .transpose()?;
        let head = self.machine.handle_redirect(slen, target, clock())?;
        let written = self.stream.write_last(&head, answer.unwrap_or_default());
        written.map_err(Error::io("sending"))
    }

    pub fn leave(self) {
        linger(self.stream.into_tcp().into_std());
    }

    /// Whether the client can be redirected. Valid once the session is [settled](Self::settled).
    pub fn can_redirect(&self) -> bool {
        self.peer == Some(Peer::Eop)
    }

    /// Finds out which protocol the client speaks. If it is EOP, handles the HELLO before anything is sent.
    #[cold]
    fn introduced(&mut self) -> Poll<Result<(), Error>> {
        let patience = self.options.patience;
        let deadline = *self
            .patience
            .get_or_insert_with(|| Instant::now() + patience);
        while self.peer.is_none() && !self.recognized() {
            let more = ready!(self.stream.read_until(&mut self.inbox, deadline));
            if more.map_err(Error::io("receiving"))? != Some(true) {
                self.peer = Some(Peer::Plain);
            }
        }
        while self.hello_due {
            if let Some((head, _)) = self.inbox.message()? {
                self.heard(&head)?;
            } else if !ready!(self.stream.read(&mut self.inbox)).map_err(Error::io("receiving"))? {
                return Poll::Ready(Err(eop_protocol::wire::Error::CutOff.into()));
            }
        }
        Poll::Ready(Ok(()))
    }

    fn recognized(&mut self) -> bool {
        self.peer = recognize(self.inbox.waiting());
        self.hello_due = self.peer == Some(Peer::Eop);
        self.peer.is_some()
    }

    /// Handles a message's head, and answers it if it asks for an answer. Returns whether the message is for the
    /// application.
    #[inline]
    fn heard(&mut self, head: &Head) -> Result<bool, Error> {
        self.hello_due = false;
        match self.machine.handle_message(head, clock_for(head))? {
            Heard::Deliver => Ok(true),
            Heard::Probe => {
                let written = self.stream.write(&Head::Welcome.bytes(0), &[]);
                written.map_err(Error::io("sending"))?;
                Ok(false)
            }
            Heard::Nothing => Ok(false),
        }
    }

    fn end(&mut self) -> Result<Option<Range<usize>>, Error> {
        let rest = self.inbox.waiting();
        match self.peer {
            Some(Peer::Eop) if !rest.is_empty() => Err(eop_protocol::wire::Error::CutOff.into()),
            // The bytes began as a HELLO does, but are none.
            None if !rest.is_empty() => {
                self.peer = Some(Peer::Plain);
                Ok(Some(self.inbox.all()))
            }
            _ => Ok(None),
        }
    }
}

/// The protocol of a client that sends these bytes first; `None` if they are too few to tell.
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

/// The current time for a head that may have a token. For other heads it is not needed, and asking for it costs.
fn clock_for(head: &Head) -> Clock {
    match head {
        Head::Hello(_) => clock(),
        _ => Clock::from_nanos(0),
    }
}

fn clock() -> Clock {
    Clock::from(SystemTime::now())
}
