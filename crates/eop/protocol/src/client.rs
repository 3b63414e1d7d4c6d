//! The client's end of a session: the server that it is at, the requests that have no answer yet, and where it goes
//! next.

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::wire::{Head, Hello, Redirect, Token};

use super::{Allow, Error, NotAllowed};

/// The options of a client's session.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Whether the application or the session sends redirected requests again.
    pub resend: Resend,
    /// Whether requests may be done twice. If so, and the session sends requests again, those that have no answer when
    /// a connection dies are sent again.
    pub idempotent: bool,
    /// How many redirects in a row may come without an answer.
    pub hops: usize,
    /// The servers that the client lets itself be sent to.
    pub allow: Allow,
    /// Whether the client says HELLO first on each connection, because servers may be plain, or serve plain clients
    /// too.
    pub probe: bool,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            resend: Resend::Application,
            idempotent: false,
            hops: 8,
            allow: Allow::default(),
            probe: false,
        }
    }
}

/// Says who sends a request again that was redirected without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resend {
    /// The application, which learns of it by [`Verdict::Redo`] (EREDO).
    Application,
    /// The session, so that the application notices nothing. The session keeps a copy of the requests that have no
    /// answer, up to a limit.
    Session {
        /// The most bytes that are kept.
        limit: usize,
    },
}

/// The client's end of a session.
#[derive(Debug)]
pub struct Client {
    options: ClientOptions,
    state: State,
    here: Place,
    /// The server whose redirect led to `here`. Forgotten once it is certain that the client need not go back there.
    before: Option<Place>,
    unanswered: VecDeque<Vec<u8>>,
    kept: usize,
    /// The servers that the client was redirected to since the last answer.
    trail: Vec<SocketAddr>,
    not_allowed: Option<NotAllowed>,
    /// Whether HELLO was said to find out what the server speaks, and WELCOME has not arrived.
    probing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The client must connect to `here`; `fell_back_from` is the server where nobody answered, if it goes back from
    /// one.
    Connecting {
        fell_back_from: Option<SocketAddr>,
    },
    Open,
    Ended,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    address: SocketAddr,
    token: Option<Token>,
}

/// What a client must send first on a new connection.
#[derive(Debug)]
pub struct Opening<'a> {
    /// The HELLO that goes before everything else.
    pub hello: Option<Hello>,
    /// The requests that must be sent again, the oldest first.
    pub again: &'a VecDeque<Vec<u8>>,
}

/// What the client must do with a message of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Deliver the message to the application.
    Deliver,
    /// Deliver the message to the application, then connect to [`Client::target`]. If `redo` is not 0, more requests
    /// had been sent: after the message, the application must be told that it must send these again.
    DeliverAndMove {
        /// How many requests must be sent again.
        redo: usize,
    },
    /// Connect to [`Client::target`]; the application notices nothing.
    Move,
    /// Connect to [`Client::target`], and tell the application that it must send all requests again that have no
    /// answer: EREDO.
    Redo {
        /// How many requests have no answer.
        unanswered: usize,
    },
    /// Nothing: the message was for the session alone.
    Nothing,
}

impl Client {
    /// Makes a session that begins at this server. The caller must connect to it.
    pub fn new(options: ClientOptions, server: SocketAddr) -> Self {
        Self {
            options,
            state: State::Connecting {
                fell_back_from: None,
            },
            here: Place {
                address: server,
                token: None,
            },
            before: None,
            unanswered: VecDeque::new(),
            kept: 0,
            trail: Vec::new(),
            not_allowed: None,
            probing: false,
        }
    }

    /// The server that the session is at, or is to be connected to.
    pub const fn target(&self) -> SocketAddr {
        self.here.address
    }

    /// Whether the caller must connect to [`Self::target`].
    pub const fn is_moving(&self) -> bool {
        matches!(self.state, State::Connecting { .. })
    }

    /// The number of requests without an answer.
    pub fn unanswered(&self) -> usize {
        self.unanswered.len()
    }

    /// The last redirect that was not followed because the client does not let itself be sent there.
    pub const fn not_allowed(&self) -> Option<NotAllowed> {
        self.not_allowed
    }

    /// Reports that the connection to [`Self::target`] is made. Returns what must be sent first.
    pub fn handle_connected(&mut self) -> Opening<'_> {
        let State::Connecting { fell_back_from } = self.state else {
            // This connection was not asked for, so there is nothing to send first.
            return Opening {
                hello: None,
                again: const { &VecDeque::new() },
            };
        };
        self.state = State::Open;
        let hello = Hello {
            token: self.here.token,
            fell_back_from,
        };
        self.probing = hello == Hello::default() && self.options.probe;
        let say = hello != Hello::default() || self.probing;
        Opening {
            hello: say.then_some(hello),
            again: &self.unanswered,
        }
    }

    /// Reports that no connection to [`Self::target`] could be made. The caller must then connect to the new target:
    /// the server that the session was at before.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if there is none; the session has ended.
    pub fn handle_unreachable(&mut self) -> Result<(), Error> {
        if !self.is_moving() {
            return Ok(());
        }
        if self.fall_back() {
            return Ok(());
        }
        self.state = State::Ended;
        Err(Error::Unreachable {
            server: self.here.address,
        })
    }

    /// Notes a request that the application sends. This must be called before any of its bytes are written. If the
    /// session [moves](Self::is_moving), the caller must connect first.
    ///
    /// # Errors
    /// [`Error::Full`]: nothing may be written. [`Error::Ended`]: the session is not connected.
    #[inline]
    pub fn handle_send(&mut self, message: &[u8]) -> Result<(), Error> {
        if self.state != State::Open {
            return Err(Error::Ended);
        }
        let copy = match self.options.resend {
            Resend::Application => Vec::new(),
            Resend::Session { limit } => {
                let bytes = self.kept.saturating_add(message.len());
                if bytes > limit {
                    return Err(Error::Full { bytes, limit });
                }
                message.to_vec()
            }
        };
        self.kept += copy.len();
        self.unanswered.push_back(copy);
        Ok(())
    }

    /// Takes the head of a message of the server that has arrived whole.
    ///
    /// # Errors
    /// [`Error::Loop`], [`Error::Hops`], [`Error::Unexpected`]: the session has ended.
    #[inline]
    pub fn handle_message(&mut self, head: &Head) -> Result<Verdict, Error> {
        if self.state != State::Open {
            return Err(Error::Ended);
        }
        match head {
            Head::Normal => {
                self.answered();
                Ok(Verdict::Deliver)
            }
            Head::Redirect(redirect) => self.redirected(redirect),
            Head::Welcome if self.probing => {
                self.probing = false;
                Ok(Verdict::Nothing)
            }
            Head::Welcome | Head::Hello(_) => {
                self.state = State::Ended;
                Err(Error::Unexpected)
            }
        }
    }

    /// Reports that the connection is gone. `Ok(true)`: the caller must connect to [`Self::target`], and the
    /// application notices nothing. `Ok(false)`: the session has ended, and nothing was lost.
    ///
    /// # Errors
    /// [`Error::Lost`] if the session has ended with requests that have no answer; [`Error::Hops`].
    pub fn handle_lost(&mut self) -> Result<bool, Error> {
        if self.state != State::Open {
            return Ok(self.is_moving());
        }
        let again = self.options.idempotent
            && matches!(self.options.resend, Resend::Session { .. })
            && !self.unanswered.is_empty();
        if again {
            // This counts as a hop: otherwise a server that dies of a request would be asked for ever.
            self.count_hop(self.here.address, false)?;
            if !self.fall_back() {
                self.state = State::Connecting {
                    fell_back_from: None,
                };
            }
            return Ok(true);
        }
        // The client was redirected here and has asked nothing yet. This is treated as if the server had never been
        // reached.
        if self.unanswered.is_empty() && self.before.is_some() && self.fall_back() {
            return Ok(true);
        }
        self.state = State::Ended;
        match self.unanswered.len() {
            0 => Ok(false),
            unanswered => Err(Error::Lost {
                server: self.here.address,
                unanswered,
            }),
        }
    }

    fn redirected(&mut self, redirect: &Redirect) -> Result<Verdict, Error> {
        if redirect.answers {
            self.answered();
        }
        let target = redirect.target;
        if let Err(error) = self.options.allow.check(self.here.address, target) {
            // This is treated as if nobody answered at the target.
            self.not_allowed = Some(error);
            self.count_hop(target, true)?;
            self.state = State::Connecting {
                fell_back_from: Some(target),
            };
        } else {
            self.count_hop(target, true)?;
            self.before = Some(self.here);
            self.here = Place {
                address: target,
                token: redirect.token,
            };
            self.state = State::Connecting {
                fell_back_from: None,
            };
        }
        let redo = self.hand_back();
        Ok(match (redirect.answers, redo) {
            (true, redo) => Verdict::DeliverAndMove { redo },
            (false, 0) => Verdict::Move,
            (false, unanswered) => Verdict::Redo { unanswered },
        })
    }

    #[inline]
    fn answered(&mut self) {
        if let Some(request) = self.unanswered.pop_front() {
            self.kept -= request.len();
        }
        self.trail.clear();
        // A client does not go back from a server that answers.
        self.before = None;
    }

    /// Forgets the unanswered requests if the application is to send them again, and returns their number. Returns 0
    /// if the session sends them again.
    fn hand_back(&mut self) -> usize {
        match self.options.resend {
            Resend::Session { .. } => 0,
            Resend::Application => {
                // Only the number of these requests was kept.
                let redo = self.unanswered.len();
                self.unanswered.clear();
                redo
            }
        }
    }

    fn count_hop(&mut self, server: SocketAddr, once: bool) -> Result<(), Error> {
        let error = if self.trail.len() >= self.options.hops {
            Error::Hops {
                hops: self.trail.len(),
                server,
            }
        } else if once && self.trail.contains(&server) {
            Error::Loop { server }
        } else {
            self.trail.push(server);
            return Ok(());
        };
        self.state = State::Ended;
        Err(error)
    }

    fn fall_back(&mut self) -> bool {
        let Some(before) = self.before.take() else {
            return false;
        };
        self.state = State::Connecting {
            fell_back_from: Some(self.here.address),
        };
        self.here = before;
        true
    }
}
