//! The name of a response, and of its connection in maps and messages.

use std::net::SocketAddrV4;

use anyhow::Result;
use baton_abi::{KeptRequest, Tcb, TcbKey};
use baton_agent::Ends;
use baton_core::resume::Known;
use baton_wire::{Endpoint, Flow, Message, Progress, Resume};

/// Identifies a response by its connection and by the sequence number at which its request begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResponseId {
    pub client: SocketAddrV4,
    pub cluster: SocketAddrV4,
    pub request_seq: u32,
}

impl ResponseId {
    /// Returns the current response of this entry.
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

    /// Makes the order to have the response to the kept request ready, from the byte up to which the client has
    /// acknowledged it.
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

/// Returns both ends of a flow; `None` if they are not IPv4.
pub fn ends(flow: Flow) -> Option<Ends> {
    let end = |end: Endpoint| Some(SocketAddrV4::new(end.address.ipv4()?, end.port));
    Some(Ends {
        client: end(flow.client())?,
        cluster: end(flow.cluster())?,
    })
}
