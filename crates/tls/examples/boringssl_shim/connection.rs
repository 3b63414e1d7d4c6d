//! A connection from its handshake to its end.

use baton_tls::{Acceptor, Handshake, LONGEST_PLAIN, Progress, Received, Session, Version};

use crate::client::Client;
use crate::options::{Expected, Options};

/// The length of a record's header, whose last two bytes have the length of what follows.
const HEADER: usize = 5;

/// The random number of a ServerHello that is a HelloRetryRequest begins like this (RFC 8446, section 4.1.3).
const RETRY: [u8; 8] = [0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11];

/// Serves a connection as the runner has asked for.
pub fn serve(acceptor: &Acceptor, options: &Options, is_moving: bool) -> Result<(), String> {
    let mut client = Client::connect(options)?;
    let result = serve_client(&mut client, acceptor, options, is_moving);
    // An error is told by an alert, of which the runner must see even the last byte.
    let flushed = client.flush();
    client.end();
    result.and(flushed)
}

fn serve_client(
    client: &mut Client,
    acceptor: &Acceptor,
    options: &Options,
    is_moving: bool,
) -> Result<(), String> {
    let (session, has_retried) = shake_hands(client, acceptor)?;
    check(&session, has_retried, &options.expected)?;
    let mut connection = Connection {
        client,
        session: Some(session),
        is_moving,
    };
    connection.exchange(options)
}

/// Makes the handshake. Returns whether the client had to say its ClientHello again, as well.
fn shake_hands(client: &mut Client, acceptor: &Acceptor) -> Result<(Session, bool), String> {
    let mut handshake = Handshake::new(acceptor);
    let mut has_retried = false;
    loop {
        let progress = handshake.advance(&mut client.input, &mut client.output);
        let mut sent = client.output.windows(RETRY.len());
        has_retried |= sent.any(|bytes| bytes == RETRY);
        match progress.map_err(|error| error.to_string())? {
            Progress::Done(session) => {
                client.flush()?;
                return Ok((session, has_retried));
            }
            Progress::More => {
                client.flush()?;
                if !client.read()? {
                    return Err("the client ended in its handshake".to_owned());
                }
            }
        }
    }
}

/// Checks what was agreed upon.
fn check(session: &Session, has_retried: bool, expected: &Expected) -> Result<(), String> {
    let version = match session.version() {
        Version::Tls12 => 0x303,
        Version::Tls13 => 0x304,
    };
    let alpn = session.alpn().map(String::from_utf8_lossy);
    is(
        "the name",
        &expected.server_name,
        session.server_name().unwrap_or(""),
    )?;
    is(
        "the protocol",
        &expected.alpn,
        alpn.as_deref().unwrap_or(""),
    )?;
    is("the version", &expected.version, &version)?;
    is("the suite", &expected.suite, &session.suite().number())?;
    is("whether there was a retry", &expected.retry, &has_retried)
}

fn is<E, T>(what: &str, expected: &Option<E>, actual: &T) -> Result<(), String>
where
    E: std::borrow::Borrow<T> + std::fmt::Debug,
    T: PartialEq + std::fmt::Debug + ?Sized,
{
    match expected {
        Some(expected) if expected.borrow() != actual => {
            Err(format!("{what} is {actual:?} and not {expected:?}"))
        }
        _ => Ok(()),
    }
}

struct Connection<'a> {
    client: &'a mut Client,
    /// The session, which is away only while it moves.
    session: Option<Session>,
    is_moving: bool,
}

impl Connection<'_> {
    fn exchange(&mut self, options: &Options) -> Result<(), String> {
        let exchange = &options.exchange;
        if exchange.writes_records_of_many_sizes {
            for size in [
                0, 1, 255, 256, 257, 16383, 16384, 16385, 32767, 32768, 32769,
            ] {
                self.send(&vec![0x42; size])?;
                self.client.flush()?;
            }
        }
        if exchange.writes_first || exchange.writes_first_in_part {
            self.send(b"hello")?;
        }
        match exchange.writes_first_in_part {
            true => self.client.flush_first(1)?,
            false => self.client.flush()?,
        }
        let mut end = Received::Open;
        if !exchange.shuts_down && !exchange.writes_records_of_many_sizes {
            end = self.answer(exchange.updates_key)?;
        }
        self.with_session(|session, client| session.close(&mut client.output))?;
        let sent = self.client.flush();
        if !exchange.expects_close_notify {
            return Ok(()); // the runner may have gone
        }
        sent?;
        if exchange.shuts_down {
            end = self.discard()?;
        }
        match end {
            Received::Open => Err("the client ended without close_notify".to_owned()),
            Received::Closed => Ok(()),
        }
    }

    /// Answers what comes with each of its bits inverted, until the client ends.
    fn answer(&mut self, updates_key: bool) -> Result<Received, String> {
        loop {
            let (received, mut plain) = self.receive()?;
            if !plain.is_empty() {
                if updates_key {
                    self.with_session(|session, client| session.update_key(&mut client.output))?;
                }
                plain.iter_mut().for_each(|byte| *byte ^= 0xff);
                self.send(&plain)?;
                self.client.flush()?;
            }
            if received == Received::Closed || !self.client.read()? {
                return Ok(received);
            }
        }
    }

    /// Throws away what comes until the client ends.
    fn discard(&mut self) -> Result<Received, String> {
        loop {
            let (received, _) = self.receive()?;
            self.client.flush()?;
            if received == Received::Closed || !self.client.read()? {
                return Ok(received);
            }
        }
    }

    /// Receives all records that have come. A session that moves gets one at a time.
    fn receive(&mut self) -> Result<(Received, Vec<u8>), String> {
        let mut plain = Vec::new();
        loop {
            let length = match self.is_moving {
                true => first_record(&self.client.input),
                false => self.client.input.len(),
            };
            let later = self.client.input.split_off(length);
            let received = self.with_session(|session, client| {
                session.receive(&mut client.input, &mut plain, &mut client.output)
            })?;
            let received = received.map_err(|error| error.to_string())?;
            let is_last = later.is_empty();
            self.client.input.extend(later);
            if received == Received::Closed || is_last {
                return Ok((received, plain));
            }
        }
    }

    /// Sends data in records, between which a session that moves does so.
    fn send(&mut self, plain: &[u8]) -> Result<(), String> {
        for part in plain.chunks(LONGEST_PLAIN) {
            let sent = self.with_session(|session, client| session.send(part, &mut client.output));
            sent?.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Does something with the session, which comes from another data server if it moves.
    fn with_session<T>(
        &mut self,
        act: impl FnOnce(&mut Session, &mut Client) -> T,
    ) -> Result<T, String> {
        let mut session = self.session.take().ok_or("the session is away")?;
        if self.is_moving {
            let moved = Session::import(&session.export());
            session = moved.map_err(|error| error.to_string())?;
        }
        let result = act(&mut session, self.client);
        self.session = Some(session);
        Ok(result)
    }
}

/// The length of the first record, or of what has come of it.
fn first_record(input: &[u8]) -> usize {
    match input {
        [_, _, _, high, low, ..] => {
            let length = HEADER + usize::from(u16::from_be_bytes([*high, *low]));
            length.min(input.len())
        }
        _ => input.len(),
    }
}
