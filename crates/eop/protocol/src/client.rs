//! The client's end: which server it is at, what has no answer yet, and where to go from here.

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::wire::{Head, Hello, Redirect, Token};

use super::{Allow, Error, NotAllowed};

/// What a client is told once.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Who sends requests again.
    pub resend: Resend,
    /// Requests may be done twice: those that have no answer when a connection dies are sent again.
    pub idempotent: bool,
    /// How many redirects in a row may come without an answer.
    pub hops: usize,
    /// Where it lets itself be sent.
    pub allow: Allow,
    /// Say HELLO first on each connection, because servers may be plain, or serve plain clients too.
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

/// Who sends a request again that was redirected without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resend {
    /// The application: it is told by [`Verdict::Redo`] (EREDO).
    Application,
    /// The session, so that the application sees nothing. It keeps a copy of what has no answer, up to so
    /// many bytes.
    Session {
        /// Bytes.
        limit: usize,
    },
}

/// A session, as the client has it.
#[derive(Debug)]
pub struct Client {
    options: ClientOptions,
    state: State,
    here: Place,
    /// Where the redirect that led here came from; gone once it is known to be needed no more.
    before: Option<Place>,
    unanswered: VecDeque<Vec<u8>>,
    kept: usize,
    /// Servers redirected to since the last answer.
    trail: Vec<SocketAddr>,
    not_allowed: Option<NotAllowed>,
    /// HELLO was said to find out what the server speaks, and WELCOME has not come.
    probing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// To `here`; why it comes back, if it does.
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

/// What goes first on a new connection.
#[derive(Debug)]
pub struct Opening<'a> {
    /// Said before anything else.
    pub hello: Option<Hello>,
    /// Requests to be sent again, the oldest first.
    pub again: &'a VecDeque<Vec<u8>>,
}

/// What a message of the server means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the application's.
    Deliver,
    /// It is the application's; then connect to [`Client::target`]. If `redo` is not 0, more requests had
    /// been sent: tell the application after the message that it must send so many again.
    DeliverAndMove {
        /// How many.
        redo: usize,
    },
    /// Connect to [`Client::target`]; the application sees nothing.
    Move,
    /// Connect to [`Client::target`], and tell the application that it must send all requests again that
    /// have no answer, so many: EREDO.
    Redo {
        /// How many.
        unanswered: usize,
    },
    /// It was for the session alone.
    Nothing,
}

impl Client {
    /// A session that begins at this server. Connect to it.
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

    /// Whether [`Self::target`] is to be connected to.
    pub const fn is_moving(&self) -> bool {
        matches!(self.state, State::Connecting { .. })
    }

    /// Requests without an answer.
    pub fn unanswered(&self) -> usize {
        self.unanswered.len()
    }

    /// The last redirect that was not followed because the client does not let itself be sent there.
    pub const fn not_allowed(&self) -> Option<NotAllowed> {
        self.not_allowed
    }

    /// Whether anything must be said first on the connection to [`Self::target`].
    pub fn must_open(&self) -> bool {
        match self.state {
            State::Connecting { fell_back_from } => {
                fell_back_from.is_some()
                    || self.here.token.is_some()
                    || !self.unanswered.is_empty()
                    || self.options.probe
            }
            State::Open | State::Ended => false,
        }
    }

    /// The connection to [`Self::target`] is made: what to send first.
    pub fn handle_connected(&mut self) -> Opening<'_> {
        let State::Connecting { fell_back_from } = self.state else {
            // Nothing is to be said on a connection that nobody asked for.
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

    /// No connection to [`Self::target`] could be made: connect to what is there now, the server that it
    /// was at before.
    ///
    /// # Errors
    /// [`Error::Unreachable`]: the session has ended.
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

    /// The application sends this: note it before any of its bytes are written. If the session
    /// [moves](Self::is_moving), connect first.
    ///
    /// # Errors
    /// [`Error::Full`]: nothing is to be written. [`Error::Ended`]: not connected.
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

    /// A message of the server has come whole.
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

    /// The connection is gone. `Ok(true)`: connect to [`Self::target`], the application sees nothing.
    /// `Ok(false)`: the session has ended, and nothing was lost.
    ///
    /// # Errors
    /// [`Error::Lost`]: it has ended, and these requests have no answer. [`Error::Hops`].
    pub fn handle_lost(&mut self) -> Result<bool, Error> {
        if self.state != State::Open {
            return Ok(self.is_moving());
        }
        let again = self.options.idempotent
            && matches!(self.options.resend, Resend::Session { .. })
            && !self.unanswered.is_empty();
        if again {
            // Without a hop counted for it, a server that dies of a request would be asked for ever.
            self.count_hop(self.here.address, false)?;
            if !self.fall_back() {
                self.state = State::Connecting {
                    fell_back_from: None,
                };
            }
            return Ok(true);
        }
        // Redirected here, and nothing asked yet: as if it had never been reached.
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
            // As if nobody answered there.
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
        // A server that answers is not one to come back from.
        self.before = None;
    }

    /// Where the application sends again, the session must not: how many that are.
    fn hand_back(&mut self) -> usize {
        match self.options.resend {
            Resend::Session { .. } => 0,
            Resend::Application => {
                // Of these only the number was kept.
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
