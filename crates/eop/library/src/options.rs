//! What one end is told.

use std::time::Duration;

use eop_protocol::wire::EopKey;
use eop_protocol::{Allow, Resend};

/// How one end knows what the other one speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speak {
    /// It is EOP, by agreement; nothing is said about it.
    #[default]
    Eop,
    /// It is plain TCP, by agreement.
    Plain,
    /// Find out.
    Either,
}

/// What the other end speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// Plain TCP: bytes without messages, and no redirects.
    Plain,
    /// EOP.
    Eop,
}

/// A client's.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the server speaks.
    pub speak: Speak,
    /// Who sends requests again.
    pub resend: Resend,
    /// Requests may be done twice: with [`Resend::Session`] they are sent again when a connection dies.
    pub idempotent: bool,
    /// How many redirects in a row may come without an answer.
    pub hops: usize,
    /// Where it lets itself be sent.
    pub allow: Allow,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long a server may take to say that it speaks EOP.
    pub patience: Duration,
    /// The longest message taken, in bytes.
    pub limit: u32,
    /// Send small messages at once (no Nagle).
    pub nodelay: bool,
}

/// A server's.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// What clients speak.
    pub speak: Speak,
    /// Makes and checks tokens of redirected clients; all servers that redirect to each other have the same.
    pub key: Option<EopKey>,
    /// Serve only clients that show a token.
    pub redirected_only: bool,
    /// How long a client that may be of either kind may be silent when the server wants to speak first.
    pub patience: Duration,
    /// The longest message taken, in bytes.
    pub limit: u32,
    /// Send small messages at once (no Nagle).
    pub nodelay: bool,
}

const LIMIT: u32 = 16 << 20;

impl Default for Options {
    fn default() -> Self {
        Self {
            speak: Speak::Eop,
            resend: Resend::Application,
            idempotent: false,
            hops: 8,
            allow: Allow::default(),
            connect_timeout: Duration::from_secs(5),
            patience: Duration::from_secs(1),
            limit: LIMIT,
            nodelay: true,
        }
    }
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            speak: Speak::Eop,
            key: None,
            redirected_only: false,
            patience: Duration::from_millis(200),
            limit: LIMIT,
            nodelay: true,
        }
    }
}
