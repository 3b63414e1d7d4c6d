//! How responses begin, told by the data server that sends them to the connection servers, which remember it
//! for the day when it is dead.
//!
//! Responses that are over when the next message leaves need no other's rest: of each connection only the
//! last one is told.

use std::{
    collections::HashMap,
    net::Ipv4Addr,
    os::fd::AsFd as _,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use anyhow::Result;
use baton_abi::TcbKey;
use baton_agent::resume::{Glimpse, glimpse};
use baton_dataplane::{Heads as Seen, SeenHead};
use baton_net::Readable;
use baton_wire::{Address, Endpoint, EntryKey, Head, Heads, Message, ShortAddress};
use tokio::{
    sync::{mpsc, watch},
    time::{sleep, timeout},
};
use tracing::{debug, warn};

use super::{Counts, Letter, Wanted};

/// So long heads are gathered.
const GATHER: Duration = Duration::from_millis(10);
/// A look without a sign that there is something, should one have been lost.
const LOOK: Duration = Duration::from_secs(1);

/// Tells them until the task that sends messages has ended.
pub fn tell(
    seen: Seen,
    wanted: watch::Receiver<Wanted>,
    letters: mpsc::UnboundedSender<Letter>,
    counts: Arc<Counts>,
) -> Result<()> {
    let ready = Readable::new(seen.as_fd().try_clone_to_owned()?)?;
    tokio::spawn(run(seen, ready, wanted, letters, counts));
    Ok(())
}

async fn run(
    mut seen: Seen,
    ready: Readable,
    wanted: watch::Receiver<Wanted>,
    letters: mpsc::UnboundedSender<Letter>,
    counts: Arc<Counts>,
) {
    while !letters.is_closed() {
        if let Ok(Err(error)) = timeout(LOOK, ready.wait()).await {
            return debug!("{error}");
        }
        sleep(GATHER).await;
        let heads = match last_ones(&mut seen) {
            Ok(heads) => heads,
            Err(error) => return warn!("how responses begin is not known any more: {error}"),
        };
        counts.heads_told.fetch_add(heads.len() as u64, Relaxed);
        let lists = Heads::lists(&heads);
        let fronts: Vec<Ipv4Addr> = wanted.borrow().fronts.clone();
        for (to, list) in fronts
            .iter()
            .flat_map(|to| lists.iter().map(|list| (*to, list)))
        {
            // A task that has ended is seen above.
            let _ = letters.send((to, Message::Heads(list.clone())));
        }
    }
}

/// Of each connection the last one, if it is one.
fn last_ones(seen: &mut Seen) -> Result<Vec<Head>> {
    let mut last: HashMap<EntryKey, SeenHead> = HashMap::new();
    for head in seen.take()? {
        if let Some(key) = name(&head.flow) {
            last.insert(key, head);
        }
    }
    let read = |(key, seen): (EntryKey, SeenHead)| {
        let Glimpse { digest, length } = glimpse(&seen.text)?;
        Some(Head {
            key,
            start: seen.response_start,
            digest,
            length,
            number: Some(seen.number),
        })
    };
    Ok(last.into_iter().filter_map(read).collect())
}

/// A connection as messages name it; `None` if it is to no address.
pub fn name(key: &TcbKey) -> Option<EntryKey> {
    Some(EntryKey {
        client: Endpoint {
            address: Address::from_octets(key.client),
            port: u16::from_be(key.be_client_port),
        },
        cluster: ShortAddress::from_word(key.cluster)?,
        port: u16::from_be(key.be_cluster_port),
    })
}
