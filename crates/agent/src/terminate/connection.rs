//! One client's connection, from its handshake to its end.

use std::future::pending;
use std::io;
use std::net::{Shutdown, SocketAddrV4};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use baton_tls::{Handshake, Progress, Received, Session};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

use super::exchange::{Exchange, Forwarded, ServerEnd};
use super::{Counters, Service};
use crate::client::{Ends, end_in_order};
use crate::http::answer::Answer;
use crate::server::Server;

/// No more is read of one side while this many bytes of it wait for the other side. It holds the longest head.
const ROOM: usize = 128 << 10;
/// Most bytes of one read.
const PIECE: usize = 32 << 10;
/// A client that takes nothing for this long is let go, as nginx does (`send_timeout`).
const STALL: Duration = Duration::from_secs(60);
/// A client may take this long to end its side once the agent has ended its own.
const LINGERS: Duration = Duration::from_secs(5);

/// How a connection ended, if it did not break.
pub(super) enum End {
    /// Each response that began was sent to its end.
    Regular,
    /// No session was begun.
    Refused,
}

/// Serves a connection to its end. After an error it ends with a RST, so that its client takes no part of a response
/// for all of it.
pub(super) async fn serve(
    client: TcpStream,
    ends: Ends,
    service: &Service,
    counters: &Counters,
) -> io::Result<End> {
    client.set_nodelay(true)?;
    let deadline = Instant::now() + service.head_timeout;
    let Some((session, rest)) = shake_hands(&client, service, deadline).await else {
        return Ok(End::Refused);
    };
    counters.shaken.fetch_add(1, Relaxed);
    let server = SocketAddrV4::new(*ends.cluster.ip(), service.server_port);
    let connection = Connection {
        service,
        counters,
        ends: Ends {
            cluster: server,
            ..ends
        },
        session,
        client,
        server: None,
        exchange: Exchange::default(),
        client_in: rest,
        plain: Vec::new(),
        to_server: Vec::new(),
        from_server: Vec::new(),
        client_out: Vec::new(),
        client_has_ended: false,
        server_reads: true,
        deadline: Some(deadline),
    };
    connection.run().await?;
    Ok(End::Regular)
}

/// Makes the handshake. Returns the session, and what came behind the handshake; `None` if there is no session.
async fn shake_hands(
    client: &TcpStream,
    service: &Service,
    deadline: Instant,
) -> Option<(Session, Vec<u8>)> {
    let mut handshake = Handshake::new(&service.acceptor);
    let (mut input, mut output) = (Vec::new(), Vec::new());
    let shaking = async {
        loop {
            let progress = handshake.advance(&mut input, &mut output);
            while !output.is_empty() {
                let written = write(client, &output).await.ok()?;
                output.drain(..written);
            }
            match progress {
                Ok(Progress::Done(session)) => return Some(session),
                Ok(Progress::More) => match read(client, &mut input).await {
                    Ok(1..) => (),
                    _ => return None,
                },
                Err(error) => {
                    tracing::debug!(%error, "a TLS handshake failed");
                    // The alert that says why was sent; a RST would overtake it.
                    end_in_order(client);
                    return None;
                }
            }
        }
    };
    let session = tokio::time::timeout_at(deadline, shaking).await.ok()??;
    Some((session, input))
}

/// A connection with a session.
struct Connection<'a> {
    service: &'a Service,
    counters: &'a Counters,
    /// The client's end, and the local server's.
    ends: Ends,
    session: Session,
    client: TcpStream,
    /// The connection to the server, from the first request on.
    server: Option<TcpStream>,
    exchange: Exchange,
    /// Records of the client that are not whole yet.
    client_in: Vec<u8>,
    /// Data of the client for which it is too early.
    plain: Vec<u8>,
    to_server: Vec<u8>,
    from_server: Vec<u8>,
    /// Records that wait for the client to take them.
    client_out: Vec<u8>,
    client_has_ended: bool,
    /// Whether the server still takes what it is sent.
    server_reads: bool,
    /// Until then the head of the next request must have come.
    deadline: Option<Instant>,
}

/// What has happened on a connection.
enum Event {
    ClientSent(io::Result<usize>),
    ClientTook(io::Result<usize>),
    ServerSent(io::Result<usize>),
    ServerTook(io::Result<usize>),
    TooLate,
}

impl Connection<'_> {
    async fn run(mut self) -> io::Result<()> {
        loop {
            let is_open = self.open_records()?;
            if let Some(answer) = self.pass_on().await? {
                return self.answer(answer).await;
            }
            if !is_open {
                // Half a request is of no use to the server.
                if self.exchange.awaits_client() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                if self.exchange.is_idle() {
                    return self.end().await;
                }
                self.end_server_input();
            }
            match self.event().await {
                // A client that breaks off between two requests has all it has asked for.
                Event::ClientSent(Err(_)) if self.exchange.is_idle() => return Ok(()),
                Event::ClientSent(read) => self.client_has_ended |= read? == 0,
                Event::ClientTook(written) => drop(self.client_out.drain(..written?)),
                Event::ServerSent(Ok(1..)) => self.take_responses()?,
                Event::ServerSent(read) => return self.server_has_ended(read).await,
                Event::ServerTook(Ok(written)) => drop(self.to_server.drain(..written)),
                // The server may have answered before it stopped reading; its end says how that went.
                Event::ServerTook(Err(_)) => {
                    self.server_reads = false;
                    self.to_server.clear();
                }
                Event::TooLate if self.plain.is_empty() => return self.end().await,
                Event::TooLate => return self.answer(Answer::TooSlow).await,
            }
        }
    }

    /// Takes the data out of the client's records. False once the client has said its last.
    fn open_records(&mut self) -> io::Result<bool> {
        let Self {
            client_in,
            plain,
            client_out,
            ..
        } = self;
        match self.session.receive(client_in, plain, client_out) {
            Ok(Received::Open) => Ok(!self.client_has_ended),
            Ok(Received::Closed) => {
                self.client_has_ended = true;
                Ok(false)
            }
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// Passes requests on to the server, to which it connects first if need be. Returns the agent's own answer if there
    /// is to be one.
    async fn pass_on(&mut self) -> io::Result<Option<Answer>> {
        let was_idle = self.exchange.is_idle();
        let forwarded = self.exchange.forward(&mut self.plain, &mut self.to_server);
        match forwarded {
            Forwarded::More | Forwarded::Waits => (),
            Forwarded::Answer(answer) => return Ok(Some(answer)),
            Forwarded::Broken => return Ok(Some(Answer::Bad)),
        }
        if was_idle && !self.exchange.is_idle() {
            self.counters.requests.fetch_add(1, Relaxed);
        }
        let begins = self.exchange.is_idle() && !self.plain.is_empty();
        self.deadline = match self.deadline {
            // Before the first request, or in the head of one.
            Some(deadline) if self.server.is_none() || begins => Some(deadline),
            None if begins => Some(Instant::now() + self.service.head_timeout),
            _ => None,
        };
        if !self.to_server.is_empty() && self.server.is_none() {
            self.deadline = None;
            let Ok(server) = Server::Here(self.service.mark).connect(self.ends).await else {
                return Ok(Some(Answer::Nobody));
            };
            self.server = Some(server);
        }
        if !self.server_reads {
            self.to_server.clear();
        }
        Ok(None)
    }

    /// Encrypts what the server has answered.
    fn take_responses(&mut self) -> io::Result<()> {
        let mut answer = Vec::new();
        let taken = self.exchange.back(&mut self.from_server, &mut answer);
        let sent = self.session.send(&answer, &mut self.client_out);
        sent.map_err(io::Error::other)?;
        let what = "the server sent what is no response to a request";
        taken.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, what))
    }

    /// Waits for the next event. No more is read of a side while much of it waits.
    async fn event(&mut self) -> Event {
        let waiting = self.client_in.len() + self.plain.len() + self.to_server.len();
        let is_heard = !self.client_has_ended && waiting < ROOM;
        let (client, server) = (&self.client, self.server.as_ref());
        let deadline = self.deadline;
        tokio::select! {
            read = read(client, &mut self.client_in), if is_heard => Event::ClientSent(read),
            written = write_in_time(client, &self.client_out), if !self.client_out.is_empty() => {
                Event::ClientTook(written)
            }
            read = read_if(server, &mut self.from_server), if self.client_out.len() < ROOM => {
                Event::ServerSent(read)
            }
            written = write_if(server, &self.to_server), if !self.to_server.is_empty() => {
                Event::ServerTook(written)
            }
            () = until(deadline) => Event::TooLate,
        }
    }

    /// Passes on to the server that its client has ended, where that has a meaning.
    fn end_server_input(&mut self) {
        if let Some(server) = &self.server
            && self.to_server.is_empty()
            && self.exchange.is_tunnel()
        {
            // If the server has gone, reading from it says so.
            let _ = SockRef::from(server).shutdown(Shutdown::Write);
        }
    }

    /// Ends the client's connection because the server has ended its own.
    async fn server_has_ended(self, read: io::Result<usize>) -> io::Result<()> {
        match (self.exchange.server_ends(), read) {
            (ServerEnd::Unanswered, _) => self.answer(Answer::Nobody).await,
            (ServerEnd::Orderly, Ok(_)) => self.end().await,
            (ServerEnd::Orderly, Err(_)) if self.exchange.is_idle() => self.end().await,
            (_, Err(error)) => Err(error),
            (ServerEnd::Truncated, Ok(_)) => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Gives the agent's own answer, and ends the connection.
    async fn answer(mut self, answer: Answer) -> io::Result<()> {
        self.counters.answered.fetch_add(1, Relaxed);
        let Self {
            session,
            client_out,
            ..
        } = &mut self;
        let sent = session.send(answer.response().as_bytes(), client_out);
        sent.map_err(io::Error::other)?;
        self.end().await
    }

    /// Ends the session and the connection when the client has taken everything.
    async fn end(mut self) -> io::Result<()> {
        self.session.close(&mut self.client_out);
        while !self.client_out.is_empty() {
            let written = write_in_time(&self.client, &self.client_out).await?;
            self.client_out.drain(..written);
        }
        end_in_order(&self.client);
        SockRef::from(&self.client).shutdown(Shutdown::Write)?;
        // A socket that is closed with data in it would send a RST, which could destroy the rest of the response.
        let reading_away = async {
            loop {
                self.client_in.clear();
                if !matches!(read(&self.client, &mut self.client_in).await, Ok(1..)) {
                    return;
                }
            }
        };
        // A client that does not end has had its time.
        let _ = timeout(LINGERS, reading_away).await;
        Ok(())
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

/// Appends what has come, at most `PIECE` bytes. 0: the other side has ended.
async fn read(stream: &TcpStream, buffer: &mut Vec<u8>) -> io::Result<usize> {
    loop {
        stream.readable().await?;
        buffer.reserve(PIECE);
        match stream.try_read_buf(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => (),
            other => return other,
        }
    }
}

async fn read_if(stream: Option<&TcpStream>, buffer: &mut Vec<u8>) -> io::Result<usize> {
    match stream {
        Some(stream) => read(stream, buffer).await,
        None => pending().await,
    }
}

/// Sends as much as there is room for.
async fn write(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    loop {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => (),
            other => return other,
        }
    }
}

/// Does the same, but gives up after `STALL`.
async fn write_in_time(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    timeout(STALL, write(stream, bytes)).await?
}

async fn write_if(stream: Option<&TcpStream>, bytes: &[u8]) -> io::Result<usize> {
    match stream {
        Some(stream) => write(stream, bytes).await,
        None => pending().await,
    }
}
