//! The agent beside a client, which has the far end of its programs' connections.
//!
//! The agent is a far end as in virtual sockets ([`baton_virtual_sockets`]): a program's `connect` is done when the
//! far end's is, so the program gets the server's own refusal, and `getpeername` returns the address that it asked
//! for. Only connections that programs make pass through the agent; their listeners are not affected.

mod link;
mod session;
mod stream;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use baton_virtual_sockets::{
    Accepted, AppOptions, Connected, Family, Far, FarListening, TakenPort,
};
use eop::tokio::Socket;
use eop::{Allow, Peer, Resend, Speak};
use tokio::sync::watch;

pub use stream::AgentStream;

/// The options of an agent.
#[derive(Clone, Debug)]
pub struct Options {
    /// The servers that the agent lets itself be sent to.
    pub allow: Allow,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long a server may take to show that it speaks EOP.
    pub patience: Duration,
    /// How many of the last bytes of a connection are kept, in case they must be sent again.
    pub kept: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            allow: Allow::default(),
            connect_timeout: Duration::from_secs(5),
            patience: Duration::from_secs(1),
            kept: 1 << 20,
        }
    }
}

/// Makes connections for programs. It is a handle: a clone stands for the same agent.
#[derive(Clone, Debug, Default)]
pub struct RedSocks {
    options: Arc<Options>,
}

impl RedSocks {
    /// Makes an agent.
    pub fn new(options: Options) -> Self {
        Self {
            options: Arc::new(options),
        }
    }

    /// Connects to a server, and finds out what it speaks.
    async fn find(&self, to: SocketAddr) -> io::Result<Socket> {
        let options = eop::Options {
            speak: Speak::Either,
            // What must be sent again are bytes here, and the agent's own session keeps them.
            resend: Resend::Session { limit: 0 },
            allow: self.options.allow.clone(),
            connect_timeout: self.options.connect_timeout,
            patience: self.options.patience,
            ..eop::Options::default()
        };
        let found = eop::tokio::connect(to, options).await;
        found.map_err(|error| match error {
            // The program gets the error of its own connect().
            eop::Error::Io { cause, .. } => cause,
            error => io::Error::other(error),
        })
    }
}

impl Far for RedSocks {
    type Stream = AgentStream;
    type Listening = Never;

    /// Connects to a server, and ignores the options of the program's socket: a session has one socket after another,
    /// and none of them is the program's.
    async fn connect(
        &self,
        to: SocketAddr,
        _options: AppOptions,
    ) -> io::Result<Connected<AgentStream>> {
        let socket = self.find(to).await?;
        let peer = socket.peer();
        let (stream, client, first) = socket.into_parts();
        let local = stream.local_addr()?;
        let stream = match peer {
            Peer::Plain => AgentStream::plain(stream),
            Peer::Eop => {
                let options = Arc::clone(&self.options);
                AgentStream::eop(session::begin(options, stream, client, first))
            }
        };
        Ok(Connected { local, stream })
    }

    async fn listen(&self, _: u16, _: Family) -> io::Result<Never> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns an empty list that never changes.
    fn taken(&self) -> watch::Receiver<Box<[TakenPort]>> {
        watch::channel(Box::default()).1
    }
}

/// Stands for listeners, which an agent does not have.
#[derive(Debug)]
pub enum Never {}

impl FarListening for Never {
    type Stream = AgentStream;

    async fn accept(&mut self) -> io::Result<Accepted<AgentStream>> {
        match *self {}
    }
}
