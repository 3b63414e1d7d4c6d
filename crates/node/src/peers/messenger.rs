//! The daemon's LCCP messages: the socket by which they go and come, and the keys that nodes share.

use std::{collections::BTreeMap, net::Ipv4Addr};

use baton_net::LccpSocket;
use baton_wire::{KeyRing, Message};

use super::{
    retransmission::{Retransmission, Wanted},
    sealing,
};

/// Sends and receives the daemon's messages.
pub struct Messenger {
    pub socket: LccpSocket,
    pub keys: KeyRing,
    /// The messages that are to be sent next, each with the address of the node that gets it.
    queue: Vec<(Ipv4Addr, Message)>,
    /// How many messages to this daemon were dropped, by counter.
    pub rejected: BTreeMap<u32, u64>,
    retransmission: Retransmission,
}

impl Messenger {
    /// Makes the messenger of this socket's node.
    pub fn new(socket: LccpSocket, keys: KeyRing, retransmission: Retransmission) -> Self {
        Self {
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
        sealing::seal(self.socket.own(), &self.keys, to, message, &[])
    }

    /// Tells the retransmission task which channels to look after, and with which keys.
    pub fn look_after(&self, channels: Wanted) {
        self.retransmission.follow(channels);
    }

    /// What the retransmission task has done, by counter.
    pub fn retransmitted(&self) -> [(u32, u64); 2] {
        self.retransmission.counts()
    }
}
