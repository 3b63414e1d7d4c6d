//! The options of one end.

use std::time::Duration;

use eop_protocol::wire::EopKey;
use eop_protocol::{Allow, Resend};

/// How one end knows which protocol the other end speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speak {
    /// Both ends agree on EOP; nothing announces it.
    #[default]
    Eop,
    /// Both ends agree on plain TCP.
    Plain,
    /// The end finds out which of the two the other one speaks.
    Either,
}

/// The protocol that an end speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// Plain TCP: bytes without messages, and no redirects.
    Plain,
    /// EOP, with messages and redirects.
    Eop,
}

/// The options of a client.
#[derive(Clone, Debug)]
pub struct Options {
    /// How the client knows which protocol the server speaks.
    pub speak: Speak,
    /// Whether the application or the session sends redirected requests again.
    pub resend: Resend,
    /// Whether requests may be done twice. With [`Resend::Session`] they are then sent again when a connection dies.
    pub idempotent: bool,
    /// How many redirects in a row may come without an answer.
    pub hops: usize,
    /// The servers that the client lets itself be sent to.
    pub allow: Allow,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long a server may take to show that it speaks EOP.
    pub patience: Duration,
    /// The length of the longest message that is accepted, in bytes.
    pub limit: u32,
    /// Whether small messages are sent at once (no Nagle).
    pub nodelay: bool,
}

/// The options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// How the server knows which protocol a client speaks.
    pub speak: Speak,
    /// The key that makes and checks the tokens of redirected clients. All servers that redirect to each other need
    /// the same.
    pub key: Option<EopKey>,
    /// Whether only clients that show a token are served.
    pub redirected_only: bool,
    /// How long the server waits for a client that may speak either and is silent, if the server wants to speak first.
    pub patience: Duration,
    /// The length of the longest message that is accepted, in bytes.
    pub limit: u32,
    /// Whether small messages are sent at once (no Nagle).
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
