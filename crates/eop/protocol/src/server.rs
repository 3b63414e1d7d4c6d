//! The server's end of a session.

use std::net::SocketAddr;
use std::time::Duration;

use crate::wire::{EopKey, HEADER, Head, Hello, Redirect, Refused, Token};
use baton_wire::Clock;

use super::Error;

/// How long a redirected client may take to arrive: a connection timeout and a half.
pub const TOKEN_LIFETIME: Duration = Duration::from_secs(30);

/// The options of a server's session.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// The key that makes and checks tokens. Without it redirects carry no token, and a client's token proves
    /// nothing.
    pub key: Option<EopKey>,
    /// Whether only clients are served that were redirected here, as their token shows.
    pub redirected_only: bool,
}

/// The server's end of a session: one connection.
#[derive(Debug)]
pub struct Server {
    options: ServerOptions,
    here: SocketAddr,
    client: SocketAddr,
    state: State,
    fell_back_from: Option<SocketAddr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No message has arrived.
    First,
    Open,
    /// The client was redirected away. Messages that still arrive are for another server.
    Left,
}

/// What the server must do with a message of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Deliver the message to the application: it is a request.
    Deliver,
    /// Send [`Head::Welcome`]: the client waits to learn whether the server speaks EOP.
    Probe,
    /// Nothing: the message was for the session alone.
    Nothing,
}

impl Server {
    /// Makes the session of a connection that was accepted at `here` from `client`.
    pub const fn new(options: ServerOptions, here: SocketAddr, client: SocketAddr) -> Self {
        Self {
            options,
            here,
            client,
            state: State::First,
            fell_back_from: None,
        }
    }

    /// The server that this one had sent the client to and where nobody answers. It should not be chosen again at
    /// once.
    pub const fn fell_back_from(&self) -> Option<SocketAddr> {
        self.fell_back_from
    }

    /// Takes the head of a message of the client that has arrived whole.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Unexpected`]: the connection must be ended.
    #[inline]
    pub fn handle_message(&mut self, head: &Head, now: Clock) -> Result<Heard, Error> {
        match (head, self.state) {
            (_, State::Left) => Ok(Heard::Nothing),
            (Head::Hello(hello), State::First) => self.hello(hello, now),
            (Head::Normal, State::First) if self.options.redirected_only => {
                Err(Refused::Missing.into())
            }
            (Head::Normal, _) => {
                self.state = State::Open;
                Ok(Heard::Deliver)
            }
            _ => Err(Error::Unexpected),
        }
    }

    /// Returns the header of an answer of this many bytes.
    ///
    /// # Errors
    /// [`Error::Ended`] if the client was redirected away.
    #[inline]
    pub fn handle_send(&mut self, slen: u32) -> Result<[u8; HEADER], Error> {
        match self.state {
            State::Left => Err(Error::Ended),
            _ => Ok(Head::normal(slen)),
        }
    }

    /// Returns the head that sends the client to `target`. An answer of `answer` bytes must be sent behind it, if
    /// there is one. The session is then over at this end.
    ///
    /// # Errors
    /// [`Error::Ended`] if the client was redirected away before.
    pub fn handle_redirect(
        &mut self,
        answer: Option<u32>,
        target: SocketAddr,
        now: Clock,
    ) -> Result<Vec<u8>, Error> {
        let redirect = self.leave(target, now)?;
        let redirect = Redirect {
            answers: answer.is_some(),
            ..redirect
        };
        Ok(Head::Redirect(redirect).bytes(answer.unwrap_or(0)))
    }

    /// Returns the head that sends the client to `target`, for a relay between a client and a server that know of no
    /// messages. Of all bytes that the client has sent on this connection, the server has got the first `taken` ones
    /// and has answered them. The bytes behind them must go to `target`.
    ///
    /// # Errors
    /// [`Error::Ended`] if the client was redirected away before.
    pub fn handle_redirect_of_bytes(
        &mut self,
        taken: u64,
        target: SocketAddr,
        now: Clock,
    ) -> Result<Vec<u8>, Error> {
        let redirect = self.leave(target, now)?;
        let redirect = Redirect {
            // Without a number everything must be sent again, as the paper's header says.
            taken: (taken > 0).then_some(taken),
            ..redirect
        };
        Ok(Head::Redirect(redirect).bytes(0))
    }

    fn leave(&mut self, target: SocketAddr, now: Clock) -> Result<Redirect, Error> {
        if self.state == State::Left {
            return Err(Error::Ended);
        }
        self.state = State::Left;
        let token = self.options.key.as_ref().map(|key| {
            // The client's clock does not matter: both servers, the one that makes and the one that checks the token,
            // are of the cluster.
            let lifetime = TOKEN_LIFETIME.as_nanos() as u64;
            let expiry = Clock::from_nanos(now.as_nanos().saturating_add(lifetime));
            Token::new(key, target, self.client.ip(), expiry)
        });
        Ok(Redirect {
            target,
            answers: false,
            token,
            taken: None,
        })
    }

    fn hello(&mut self, hello: &Hello, now: Clock) -> Result<Heard, Error> {
        match (&self.options.key, hello.token) {
            // A server without the key cannot check a token, and ignores it.
            (Some(key), Some(token)) => token.check(key, self.here, self.client.ip(), now)?,
            _ if self.options.redirected_only => return Err(Refused::Missing.into()),
            _ => {}
        }
        self.state = State::Open;
        self.fell_back_from = hello.fell_back_from;
        // A client that was redirected here knows that this server speaks EOP.
        Ok(if *hello == Hello::default() {
            Heard::Probe
        } else {
            Heard::Nothing
        })
    }
}
