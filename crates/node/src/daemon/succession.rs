//! Signs of life while a daemon takes the place of an earlier one.
//!
//! Setting a node up takes a while, because the kernel verifies the programs. The earlier daemon's packet path
//! serves meanwhile, but other nodes would take the node's silence for its end, and would take pools that have no other
//! data server for empty. So the new daemon says HELLO from its start, without the health of its services: what the
//! earlier daemon said last of that stays valid.

use anyhow::Result;
use baton_net::LccpSocket;
use baton_wire::Incarnation;
use tokio::time::interval;

use crate::{
    local_node::LocalNode,
    owned_task::OwnedTask,
    peers::{
        heartbeat::{self, Heartbeat},
        keys::key_ring,
        sealing,
    },
};

/// Starts the task that says HELLO, until it is dropped. `draining` says whether the earlier daemon was draining. Call
/// this only if an earlier daemon's packet path is in place.
pub fn say_hello(local: &LocalNode, incarnation: Incarnation, draining: bool) -> Result<OwnedTask> {
    let config = &local.config;
    let socket = LccpSocket::open(local.address, config.cluster.protocol.number())?;
    let peers = heartbeat::peers(config, local.address);
    let keys = key_ring(config, &local.me);
    let mut beat = interval(config.cluster.hello);
    let mut heartbeat = Heartbeat::new(incarnation);
    Ok(OwnedTask::spawn(async move {
        loop {
            beat.tick().await;
            let messages = heartbeat.next(draining, &[]);
            for peer in &peers {
                for message in &messages {
                    sealing::say(&socket, &keys, *peer, message, &[]).await;
                }
            }
        }
    }))
}
