//! Keeps the server's answers on this host. They are addressed to the client, because the agent connects to the server
//! with the client's address.
//!
//! The agent's connection carries a mark. What the server sends on its side of this connection inherits the mark, and a
//! routing table for the mark declares every address local.

use baton_net::netlink::route::{LocalRoute, MarkRule};
use baton_net::{Host, Result, Sysctl};

/// The mark, and the routing table that it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routing {
    /// SO_MARK of the connections to the server.
    pub mark: u32,
    /// A routing table that nobody else uses.
    pub table: u32,
    /// Priority of the rule: it must come before the main table's 32766.
    pub priority: u32,
}

/// The default numbers are unlikely to be used by anybody else: the letters "batr", and 253 as in the protocol.
impl Default for Routing {
    fn default() -> Self {
        Self {
            mark: 0x6261_7472,
            table: 0x6261_7472,
            priority: 253,
        }
    }
}

impl Routing {
    /// Sets the host up for connections to a server on it. Each change is journaled.
    ///
    /// # Errors
    /// [`baton_net::Error::System`]. What was done before the error is in the journal.
    pub async fn prepare(&self, host: &mut Host) -> Result<()> {
        self.keep_marked(host).await?;
        host.set(&Sysctl::tcp_fwmark_accept(), "1")?;
        // Where nobody listens, the refusal must come back here instead of going to the client.
        host.set(&Sysctl::fwmark_reflect(), "1")
    }

    /// Sets the host up for connections to servers in containers. A program marks what these servers send, so it only
    /// has to stay on this host.
    ///
    /// # Errors
    /// As for [`Routing::prepare`].
    pub async fn keep_marked(&self, host: &mut Host) -> Result<()> {
        let Self {
            mark,
            table,
            priority,
        } = *self;
        host.add_local_route(&LocalRoute { table }).await?;
        let rule = MarkRule {
            mark,
            table,
            priority,
        };
        host.add_rule(&rule).await.map(|_| ())
    }
}
