//! How responses begin, told by the data server that sends them to the connection servers, which remember it
//! for the day when it is dead.
//!
//! Responses that are over when the next message leaves need no other's rest: of each connection only the
//! last one is told. Where this node, as the owner, keeps the request of a longer one, that is told with it.

use std::{
    collections::HashMap,
    net::Ipv4Addr,
    os::fd::AsFd as _,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use anyhow::Result;
use baton_abi::{NO_POOL, TcbKey};
use baton_agent::resume::{Glimpse, glimpse};
use baton_dataplane::{Heads as Seen, SeenHead};
use baton_net::Readable;
use baton_wire::{
    Address, AnsweredRequest, Endpoint, EntryKey, Head, Heads, Message, ShortAddress,
};
use tokio::{
    sync::{mpsc, watch},
    time::{sleep, timeout},
};
use tracing::{debug, warn};

use super::{Counts, Letter, Wanted};

/// So long heads are gathered.
const GATHER: Duration = Duration::from_millis(10);
/// A response of so many bytes leaves at once (RFC 6928), and is over before another data server could send the rest.
const AT_ONCE: u32 = 10 * 1460;
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
        let lists = lists(heads);
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

/// Of each connection the last one, if it is one, and its request, if that is kept here and may be needed.
fn last_ones(seen: &mut Seen) -> Result<Vec<(Head, Option<AnsweredRequest>)>> {
    let mut last: HashMap<EntryKey, SeenHead> = HashMap::new();
    for head in seen.take()? {
        if let Some(key) = name(&head.flow) {
            last.insert(key, head);
        }
    }
    let mut heads = Vec::with_capacity(last.len());
    for (key, found) in last {
        let Some(Glimpse { digest, length }) = glimpse(&found.text) else {
            continue;
        };
        let head = Head {
            key,
            start: found.response_start,
            digest,
            length,
            number: Some(found.number),
        };
        let is_long = length.is_none_or(|length| length.get() > AT_ONCE);
        let kept = if is_long {
            let kept = seen.request_of(&found.flow, found.response_start)?;
            // Without a pool this node keeps it as a connection server, for itself.
            kept.filter(|kept| u32::from(kept.pool) != NO_POOL)
        } else {
            None
        };
        let request = match kept {
            Some(kept) => Some(AnsweredRequest {
                seq: kept.request_seq,
                pool: seen.pool_id(kept.pool)?,
                text: kept.text[..usize::from(kept.bytes).min(kept.text.len())].to_vec(),
            }),
            None => None,
        };
        heads.push((head, request));
    }
    Ok(heads)
}

/// As many messages as they need: a request is in one of its own.
fn lists(heads: Vec<(Head, Option<AnsweredRequest>)>) -> Vec<Heads> {
    let (mut alone, mut lists) = (Vec::new(), Vec::new());
    for (head, request) in heads {
        match request {
            Some(request) => lists.push(Heads::with_request(head, request)),
            None => alone.push(head),
        }
    }
    lists.extend(Heads::lists(&alone));
    lists
}

/// As the tables name it.
pub fn key(name: &EntryKey) -> TcbKey {
    TcbKey {
        client: name.client.address.octets(),
        cluster: name.cluster.word(),
        be_client_port: name.client.port.to_be(),
        be_cluster_port: name.port.to_be(),
    }
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
