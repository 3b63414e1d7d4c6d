//! Whose messages the programs have refused for their clocks.

use std::{collections::HashMap, net::Ipv4Addr, time::Duration};

use crate::{Dataplane, Error, clock, maps::entries};

/// Somebody with the right key and another clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleSender {
    /// Its clock less ours.
    pub ahead_ns: i64,
    /// How long ago that was.
    pub age: Duration,
}

impl Dataplane {
    /// By the address of each sender.
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
