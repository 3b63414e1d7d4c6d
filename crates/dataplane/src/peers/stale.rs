//! Nodes whose messages the programs have refused for their clocks.

use std::{collections::HashMap, net::Ipv4Addr, time::Duration};

use crate::{Dataplane, Error, clock, maps::entries};

/// A node with the right key and another clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleSender {
    /// The node's clock minus ours, in nanoseconds.
    pub ahead_ns: i64,
    /// How long ago its message was last refused.
    pub age: Duration,
}

impl Dataplane {
    /// The nodes whose messages were refused for their clocks, by address.
    pub fn stale_senders(&self) -> Result<HashMap<Ipv4Addr, StaleSender>, Error> {
        let map = &self.programs().common.stale_senders;
        let senders = entries::<u32, baton_abi::StaleSender>("stale_senders", map)?;
        Ok(senders
            .into_iter()
            .map(|(address, sender)| {
                let sender = StaleSender {
                    ahead_ns: sender.ahead_ns,
                    age: clock::age(sender.seen_ns),
                };
                (Ipv4Addr::from(address.to_ne_bytes()), sender)
            })
            .collect())
    }
}
