//! Tells the LAN that the cluster addresses are at this node.

use std::{net::Ipv4Addr, num::NonZeroU32, time::Duration};

use baton_net::{
    Link,
    announce::{announce, arp},
};
use tokio::task::AbortHandle;
use tracing::warn;

/// How often an address is announced: more than once, because one announcement may be lost.
const TIMES: NonZeroU32 = NonZeroU32::new(3).expect("3 is not 0");
const GAP: Duration = Duration::from_millis(500);

/// Announces the addresses three times in the background. The returned handle aborts this.
pub fn announce_all(link: &Link, addresses: &[Ipv4Addr]) -> AbortHandle {
    let link = link.clone();
    let frames: Vec<_> = addresses
        .iter()
        .flat_map(|address| arp::gratuitous(link.mac, *address))
        .collect();
    let announcing = tokio::spawn(async move {
        if let Err(error) = announce(&link, &frames, TIMES, GAP).await {
            warn!("the cluster address could not be announced: {error}");
        }
    });
    announcing.abort_handle()
}
