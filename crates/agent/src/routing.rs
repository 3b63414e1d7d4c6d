//! What keeps the server's answers on this host: they are addressed to the client, in whose name the agent has connected.
//!
//! The agent's connection carries a mark, what the server sends on its side of it inherits the mark, and a routing table for the
//! mark declares every address local.

use baton_net::netlink::route::{LocalRoute, MarkRule};
use baton_net::{Host, Result, Sysctl};

/// The mark and the routing table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routing {
    /// SO_MARK of the connections to the server.
    pub mark: u32,
    /// A routing table that nobody else uses.
    pub table: u32,
    /// Of the rule, before the main table's 32766.
    pub priority: u32,
}

/// Numbers that nobody else is likely to have: the letters "batr", and 253 as in the protocol.
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
    /// Sets the host up for connections to a server on it; each change is journaled.
    ///
    /// # Errors
    /// [`baton_net::Error::System`]. What was done before the error is in the journal.
    pub async fn prepare(&self, host: &mut Host) -> Result<()> {
        self.keep_marked(host).await?;
        host.set(&Sysctl::tcp_fwmark_accept(), "1")?;
        // Where nobody listens, the refusal must come back here instead of going to the client.
        host.set(&Sysctl::fwmark_reflect(), "1")
    }

    /// The same for servers in containers: a program marks what they send, so it only has to stay here.
    ///
    /// # Errors
    /// As [`Routing::prepare`].
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
