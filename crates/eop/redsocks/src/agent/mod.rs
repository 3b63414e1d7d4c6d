//! The agent beside a client, which has the far end of its programs' connections.
//!
//! The agent is a far end as in virtual sockets ([`baton_virtual_sockets`]): a program's `connect` is done when the
//! far end's is, so the program gets the server's own refusal, and `getpeername` returns the address that it asked
//! for. Only connections that programs make pass through the agent; their listeners are not affected.

mod link;
mod session;
mod stream;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baton_virtual_sockets::{
    Accepted, AppOptions, Connected, Family, Far, FarListening, TakenPort,
};
use eop_protocol::{Allow, Client, ClientOptions, Resend};
use tokio::net::TcpStream;
use tokio::sync::watch;

use link::Found;
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
    plain: Arc<Mutex<HashMap<SocketAddr, Instant>>>,
}

/// How long a server counts as plain. It may be upgraded meanwhile.
const PLAIN_FOR: Duration = Duration::from_secs(600);

/// How many redirects in a row may come without an answer.
const HOPS: usize = 8;

impl RedSocks {
    /// Makes an agent that knows nothing of any server yet.
    pub fn new(options: Options) -> Self {
        Self {
            options: Arc::new(options),
            plain: Arc::default(),
        }
    }

    fn client(&self, server: SocketAddr) -> Client {
        Client::new(
            ClientOptions {
                // What must be sent again are bytes here, and the agent's own session keeps them.
                resend: Resend::Session { limit: 0 },
                idempotent: false,
                hops: HOPS,
                allow: self.options.allow.clone(),
                probe: true,
            },
            server,
        )
    }

    fn is_plain(&self, server: SocketAddr) -> bool {
        let plain = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
        (plain.get(&server)).is_some_and(|since| since.elapsed() < PLAIN_FOR)
    }

    fn found_plain(&self, server: SocketAddr) {
        let mut plain = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
        plain.retain(|_, since| since.elapsed() < PLAIN_FOR);
        plain.insert(server, Instant::now());
    }

    async fn find(&self, to: SocketAddr) -> io::Result<(TcpStream, Option<Client>)> {
        if !self.is_plain(to) {
            let mut client = self.client(to);
            match link::find_out(to, &mut client, &self.options).await? {
                Found::Eop(stream) => return Ok((stream, Some(client))),
                Found::Plain(stream) => return Ok((stream, None)),
                Found::Spent => self.found_plain(to),
            }
        }
        let stream = link::connect(to, self.options.connect_timeout).await?;
        Ok((stream, None))
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
        let (stream, client) = self.find(to).await?;
        let local = stream.local_addr()?;
        let stream = match client {
            None => AgentStream::plain(stream),
            Some(client) => {
                AgentStream::eop(session::begin(Arc::clone(&self.options), stream, client))
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
