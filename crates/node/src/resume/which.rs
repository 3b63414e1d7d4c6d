//! Which response, and what the tables and messages call its connection.

use std::net::SocketAddrV4;

use anyhow::Result;
use baton_abi::{KeptRequest, Tcb, TcbKey};
use baton_agent::Ends;
use baton_core::resume::Known;
use baton_wire::{Endpoint, Flow, Message, Progress, Resume};

/// A response: of which connection, and to the request that begins where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Which {
    pub client: SocketAddrV4,
    pub cluster: SocketAddrV4,
    pub request_seq: u32,
}

impl Which {
    /// The current one of this entry.
    pub fn of(key: &TcbKey, tcb: &Tcb) -> Self {
        let (client, cluster) = key.ends();
        Self {
            client,
            cluster,
            request_seq: tcb.request_seq,
        }
    }

    pub fn key(&self) -> TcbKey {
        TcbKey::of(self.client, self.cluster)
    }

    pub fn flow(&self) -> Result<Flow> {
        Ok(Flow::new(self.client, self.cluster)?)
    }

    /// The order to have the response ready, from where its client is, for the request as it was kept.
    pub fn order(
        &self,
        number: u64,
        tcb: &Tcb,
        kept: &KeptRequest,
        known: Known,
    ) -> Result<Message> {
        let progress = Progress {
            start: kept.response_start,
            acknowledged: tcb.last_ack,
            digest: known.digest,
            length: known.length,
        };
        let text = &kept.text[..usize::from(kept.bytes).min(kept.text.len())];
        let order = Resume::new(self.flow()?, number, progress, text.to_vec())?;
        Ok(Message::Resume(order))
    }
}

/// `None` of a flow that is not IPv4.
pub fn ends(flow: Flow) -> Option<Ends> {
    let end = |end: Endpoint| Some(SocketAddrV4::new(end.address.ipv4()?, end.port));
    Some(Ends {
        client: end(flow.client())?,
        cluster: end(flow.cluster())?,
    })
}
