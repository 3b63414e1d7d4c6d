//! The daemon's LCCP messages: the socket by which they go and come, and the keys that nodes share.

use std::{collections::BTreeMap, net::Ipv4Addr, sync::Arc};

use baton_net::LccpSocket;
use baton_wire::{KeyRing, Message};
use tokio::sync::watch;

use super::{retransmission, sealing};

/// Sends and receives the daemon's messages.
pub struct Messenger {
    /// This node's own address.
    own: Ipv4Addr,
    pub socket: LccpSocket,
    pub keys: KeyRing,
    /// The messages that are to be sent next, each with the address of the node that gets it.
    queue: Vec<(Ipv4Addr, Message)>,
    /// How many messages to this daemon were dropped, by counter.
    pub rejected: BTreeMap<u32, u64>,
    retransmission: Retransmission,
}

/// The handle to the task that sends lost messages again.
pub struct Retransmission {
    pub wanted: watch::Sender<retransmission::Wanted>,
    pub counts: Arc<retransmission::Counts>,
}

impl Messenger {
    /// Makes the messenger of the node whose address is `own`.
    pub fn new(
        own: Ipv4Addr,
        socket: LccpSocket,
        keys: KeyRing,
        retransmission: Retransmission,
    ) -> Self {
        Self {
            own,
            socket,
            keys,
            queue: Vec::new(),
            rejected: BTreeMap::new(),
            retransmission,
        }
    }

    /// Has a message sent as soon as the daemon has handled what it is handling.
    pub fn queue(&mut self, to: Ipv4Addr, message: Message) {
        self.queue.push((to, message));
    }

    /// Sends the messages that are queued.
    pub async fn send_queued(&mut self) {
        for (to, message) in std::mem::take(&mut self.queue) {
            self.send(to, &message).await;
        }
    }

    /// Sends a message at once.
    pub async fn send(&self, to: Ipv4Addr, message: &Message) {
        sealing::say(&self.socket, &self.keys, to, message, &[]).await;
    }

    /// Encodes a message that carries no client's packet, from this node to `to`, under the key they share.
    pub fn sealed(&self, message: &Message, to: Ipv4Addr) -> Vec<u8> {
        sealing::seal(self.own, &self.keys, to, message, &[])
    }

    /// Tells the retransmission task which channels to look after, and with which keys.
    pub fn look_after(&self, channels: retransmission::Wanted) {
        self.retransmission.wanted.send_replace(channels);
    }

    /// What the retransmission task has done, by counter.
    pub fn retransmitted(&self) -> [(u32, u64); 2] {
        self.retransmission.counts.get()
    }
}
