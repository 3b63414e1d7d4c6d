//! A client that speaks EOP: redirected, or served by the server behind this front.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use baton_wire::Clock;
use eop_protocol::turns::{Step, Turns};
use eop_protocol::wire::{Decoder, Head, Piece, Refused};
use eop_protocol::{Heard, Server, ServerOptions};
use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Shared, connect, linger};
use crate::pipe::{PIECE, Pipe};

/// The reason why a client is reset.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error(transparent)]
    Session(eop_protocol::Error),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    Protocol(#[from] eop_protocol::wire::Error),
    #[error("no server answers")]
    Nobody,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<eop_protocol::Error> for Failed {
    fn from(error: eop_protocol::Error) -> Self {
        match error {
            eop_protocol::Error::Refused(refused) => Self::Refused(refused),
            other => Self::Session(other),
        }
    }
}

struct Session {
    shared: Arc<Shared>,
    here: SocketAddr,
    from: SocketAddr,
    server: Server,
    decoder: Decoder,
    turns: Turns,
    /// The path of the request that is held back, if one is.
    asked: Option<Vec<u8>>,
    /// The servers that this client must not be sent to.
    without: Vec<SocketAddr>,
    /// The bytes on their way to the server.
    up: Pipe,
    /// The bytes on their way to the client.
    down: Pipe,
}

/// How a session goes on after bytes were carried.
enum After {
    /// The client is redirected, and REDIRECT is on its way.
    Redirected,
    Ended,
}

pub(super) async fn serve(
    shared: Arc<Shared>,
    stream: &mut TcpStream,
    here: SocketAddr,
    from: SocketAddr,
    first: Vec<u8>,
    agreed: bool,
    since: Instant,
) -> Result<(), Failed> {
    let options = ServerOptions {
        key: shared.options.key.clone(),
        redirected_only: shared.options.redirected_only,
    };
    let movable = shared.has_others;
    let mut session = Session {
        here,
        from,
        server: Server::new(options, here, from),
        decoder: Decoder::new(u32::MAX),
        turns: if movable {
            Turns::new()
        } else {
            Turns::pinned()
        },
        asked: None,
        without: Vec::new(),
        up: Pipe::default(),
        down: Pipe::default(),
        shared,
    };
    SockRef::from(&*stream).set_linger(Some(Duration::ZERO))?;
    let after = session.run(stream, first, agreed, since).await?;
    let _ = SockRef::from(&*stream).set_linger(None);
    if matches!(after, After::Redirected) {
        session.down.flush(stream).await?;
        linger(stream).await;
    }
    Ok(())
}

impl Session {
    async fn run(
        &mut self,
        stream: &mut TcpStream,
        first: Vec<u8>,
        agreed: bool,
        since: Instant,
    ) -> Result<After, Failed> {
        // A client that was redirected here says HELLO in any case.
        if !agreed || self.shared.options.redirected_only {
            self.greet(stream, first).await?;
        }
        let far = match self.early(stream).await? {
            Some(place) => Err(place),
            None => self.reach().await?,
        };
        let mut far = match far {
            Ok(far) => far,
            Err(place) => {
                // None of the client's bytes have been passed on.
                self.redirect(place, 0)?;
                self.down.flush(stream).await?;
                self.shared.counters.redirected.add(since.elapsed());
                return Ok(After::Redirected);
            }
        };
        self.shared.counters.relayed.add();
        SockRef::from(&far).set_linger(Some(Duration::ZERO))?;
        let after = self.relay(stream, &mut far).await?;
        let _ = SockRef::from(&far).set_linger(None);
        Ok(after)
    }

    /// The server that the client belongs to, before anything was done for the client. `None` if it belongs here.
    async fn early(&mut self, stream: &mut TcpStream) -> Result<Option<SocketAddr>, Failed> {
        if !self.shared.by_path {
            return Ok(self.elsewhere(None));
        }
        // The client waits for WELCOME.
        self.down.flush(stream).await?;
        let mut bytes = Vec::with_capacity(PIECE);
        loop {
            if let Some(path) = self.asked.take() {
                let place = self.elsewhere(Some(&path));
                if place.is_none() {
                    self.up.put(&self.turns.pass());
                }
                return Ok(place);
            }
            if !self.turns.are_quiet() {
                // The client's bytes are not a request with a known path, but must still go to some server.
                return Ok(self.elsewhere(Some(b"")));
            }
            bytes.clear();
            if stream.read_buf(&mut bytes).await? == 0 {
                self.decoder.finish()?;
                self.up.put(&self.turns.give_up());
                continue;
            }
            self.hear(&bytes)?;
        }
    }

    fn elsewhere(&self, path: Option<&[u8]>) -> Option<SocketAddr> {
        (self.shared).elsewhere(self.here, self.from.ip(), path, &self.without)
    }

    /// Connects to the server behind this front. If it does not answer, returns another server to send the client to.
    async fn reach(&self) -> Result<Result<TcpStream, SocketAddr>, Failed> {
        if let Some(behind) = self.shared.behind
            && let Ok(stream) = connect(behind).await
        {
            return Ok(Ok(stream));
        }
        let without = [&self.without[..], &[self.here]].concat();
        let other = self.shared.choose(self.from.ip(), b"", &without);
        other.map(Err).ok_or(Failed::Nobody)
    }

    /// Reads the HELLO, whose beginning has arrived.
    async fn greet(&mut self, stream: &mut TcpStream, first: Vec<u8>) -> Result<(), Failed> {
        let mut bytes = first;
        while !self.hear(&bytes)? {
            bytes.clear();
            if stream.read_buf(&mut bytes).await? == 0 {
                return Err(eop_protocol::wire::Error::CutOff.into());
            }
        }
        Ok(())
    }

    /// Takes bytes that a client sends. Returns `true` if they completed at least one head.
    fn hear(&mut self, mut bytes: &[u8]) -> Result<bool, Failed> {
        let mut heads = false;
        while let Some(piece) = self.decoder.next(&mut bytes)? {
            match piece {
                Piece::Head(head, _) => {
                    heads = true;
                    let now = Clock::from(SystemTime::now());
                    if self.server.handle_message(&head, now)? == Heard::Probe {
                        self.down.put(&Head::Welcome.bytes(0));
                    }
                    if let Some(place) = self.server.fell_back_from()
                        && !self.without.contains(&place)
                    {
                        self.shared.counters.fell_back.add();
                        self.shared.is_down(place);
                        self.without.push(place);
                    }
                }
                Piece::Data(data) => self.pass(data),
                Piece::End => {}
            }
        }
        Ok(heads)
    }

    fn pass(&mut self, data: &[u8]) {
        match self.turns.handle_request(data) {
            Step::Wait => {}
            Step::Pass(bytes) => self.up.put(&bytes),
            Step::Ask { path } => self.asked = Some(path),
        }
    }

    fn redirect(&mut self, place: SocketAddr, taken: u64) -> Result<(), Failed> {
        let now = Clock::from(SystemTime::now());
        let head = self.server.handle_redirect_of_bytes(taken, place, now)?;
        self.down.put(&head);
        Ok(())
    }

    /// Passes the request on that is held back, or redirects the client. Returns `true` if the client is redirected.
    fn decide(&mut self) -> Result<bool, Failed> {
        let place = match self.asked.take() {
            Some(path) => {
                let place = self.elsewhere(Some(&path));
                if place.is_none() {
                    self.up.put(&self.turns.pass());
                }
                place
            }
            None if self.shared.is_draining() && self.turns.are_quiet() => self.elsewhere(None),
            None => None,
        };
        let Some(place) = place else {
            return Ok(false);
        };
        self.redirect(place, self.turns.passed())?;
        self.shared.counters.redirected_between.add();
        Ok(true)
    }

    /// Carries bytes in both directions until both have ended, or the client is redirected.
    async fn relay(
        &mut self,
        stream: &mut TcpStream,
        far: &mut TcpStream,
    ) -> Result<After, Failed> {
        let mut drains = self.shared.drains.clone();
        let (mut from_client, mut to_client) = stream.split();
        let (mut from_far, mut to_far) = far.split();
        let (mut incoming, mut outgoing) = (vec![0; PIECE], vec![0; PIECE]);
        let (mut client_ended, mut far_ended, mut told) = (false, false, false);
        let (mut shut_up, mut shut_down) = (false, false);
        loop {
            if !client_ended && !far_ended && self.decide()? {
                return Ok(After::Redirected);
            }
            if client_ended && self.up.is_empty() && !shut_up {
                shut_up = true;
                to_far.shutdown().await?;
            }
            if far_ended && self.down.is_empty() && !shut_down {
                shut_down = true;
                to_client.shutdown().await?;
            }
            if shut_up && shut_down {
                return Ok(After::Ended);
            }
            tokio::select! {
                read = from_client.read(&mut incoming), if self.up.is_empty() && !client_ended => {
                    match read? {
                        0 => {
                            self.decoder.finish()?;
                            client_ended = true;
                            self.asked = None;
                            self.up.put(&self.turns.give_up());
                        }
                        count => {
                            self.hear(&incoming[..count])?;
                        }
                    }
                }
                wrote = self.up.drain(&mut to_far), if !self.up.is_empty() => wrote?,
                read = from_far.read(&mut outgoing), if self.down.is_empty() && !far_ended => {
                    let bytes = &outgoing[..read?];
                    far_ended = bytes.is_empty();
                    if far_ended {
                        // The request that is held back can no longer be answered here, nor be sent to another server.
                        self.up.put(&self.turns.give_up());
                    } else {
                        let held = self.turns.handle_response(bytes);
                        if !held.is_empty() {
                            self.asked = None;
                            self.up.put(&held);
                        }
                        // A piece has at most PIECE bytes.
                        self.down.put(&Head::normal(bytes.len() as u32));
                        self.down.put(bytes);
                    }
                }
                wrote = self.down.drain(&mut to_client), if !self.down.is_empty() => wrote?,
                changed = drains.changed(), if !told => told = changed.is_err() || self.shared.is_draining(),
            }
        }
    }
}
