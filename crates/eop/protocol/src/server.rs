//! The server's end of a session.

use std::net::SocketAddr;
use std::time::Duration;

use crate::wire::{EopKey, HEADER, Head, Hello, Redirect, Refused, Token};
use baton_wire::Clock;

use super::Error;

/// How long a redirected client may take to come: a connection timeout and a half.
pub const TOKEN_LIFETIME: Duration = Duration::from_secs(30);

/// What a server is told once.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// Makes and checks tokens. Without it redirects carry none, and none is believed.
    pub key: Option<EopKey>,
    /// Serve only clients that were redirected here, as their token shows.
    pub redirected_only: bool,
}

/// A session, as the server has it: one connection.
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
    /// Nothing has come.
    First,
    Open,
    /// Redirected away: what still comes is for another server.
    Left,
}

/// What a message of the client means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A request, for the application.
    Deliver,
    /// The client waits to hear that this is EOP: send [`Head::Welcome`].
    Probe,
    /// It was for the session alone.
    Nothing,
}

impl Server {
    /// A connection that was accepted at `here` from `client`.
    pub const fn new(options: ServerOptions, here: SocketAddr, client: SocketAddr) -> Self {
        Self {
            options,
            here,
            client,
            state: State::First,
            fell_back_from: None,
        }
    }

    /// Where this server had sent the client, and nobody answers: not to be chosen again at once.
    pub const fn fell_back_from(&self) -> Option<SocketAddr> {
        self.fell_back_from
    }

    /// Whether it has been redirected away.
    pub fn has_left(&self) -> bool {
        self.state == State::Left
    }

    /// A message of the client has come whole.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Unexpected`]: end the connection.
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

    /// The header of an answer of so many bytes.
    ///
    /// # Errors
    /// [`Error::Ended`].
    #[inline]
    pub fn handle_send(&mut self, slen: u32) -> Result<[u8; HEADER], Error> {
        match self.state {
            State::Left => Err(Error::Ended),
            _ => Ok(Head::normal(slen)),
        }
    }

    /// The head that sends the client to `target`, behind which an answer of `answer` bytes is to be
    /// sent, if there is one. From then on this end is divorced from the client.
    ///
    /// # Errors
    /// [`Error::Ended`].
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

    /// The same for a relay, between a client and a server that know of no messages: of all that the client
    /// has sent on this connection the server has had the first `taken` bytes, and has answered them. What
    /// the client has sent beyond them goes to `target`.
    ///
    /// # Errors
    /// [`Error::Ended`].
    pub fn handle_redirect_of_bytes(
        &mut self,
        taken: u64,
        target: SocketAddr,
        now: Clock,
    ) -> Result<Vec<u8>, Error> {
        let redirect = self.leave(target, now)?;
        let redirect = Redirect {
            // Without it all is to be sent again, as the paper's header says.
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
            // A client's clock is not asked: who makes and who checks are both of the cluster.
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
            // A server without the key cannot tell, and is not told to.
            (Some(key), Some(token)) => token.check(key, self.here, self.client.ip(), now)?,
            _ if self.options.redirected_only => return Err(Refused::Missing.into()),
            _ => {}
        }
        self.state = State::Open;
        self.fell_back_from = hello.fell_back_from;
        // Who was redirected knows what it talks to.
        Ok(if *hello == Hello::default() {
            Heard::Probe
        } else {
            Heard::Nothing
        })
    }
}
