//! A data server tells the connection servers how its responses begin. They remember it, so that the responses can be
//! resumed when this data server is dead.
//!
//! Of each connection only the last response is told: earlier ones are over when the message leaves, and need not be
//! resumed. If this node, as the owner, keeps the request of a long response, the message contains the request too.

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

use super::{Counts, Outgoing, Wanted};

/// Heads are gathered for this long before they are sent.
const GATHER: Duration = Duration::from_millis(10);
/// A response of at most this many bytes leaves at once (RFC 6928). It is over before another data server could send
/// the rest.
const AT_ONCE: u32 = 10 * 1460;
/// The ring is read at least this often, even without a wake-up, because a wake-up may be lost.
const LOOK: Duration = Duration::from_secs(1);

/// Starts a task that tells connection servers how responses begin, until the task that sends messages has ended.
pub fn tell(
    seen: Seen,
    wanted: watch::Receiver<Wanted>,
    outgoing: mpsc::UnboundedSender<Outgoing>,
    counts: Arc<Counts>,
) -> Result<()> {
    let ready = Readable::new(seen.as_fd().try_clone_to_owned()?)?;
    tokio::spawn(run(seen, ready, wanted, outgoing, counts));
    Ok(())
}

async fn run(
    mut seen: Seen,
    ready: Readable,
    wanted: watch::Receiver<Wanted>,
    outgoing: mpsc::UnboundedSender<Outgoing>,
    counts: Arc<Counts>,
) {
    while !outgoing.is_closed() {
        if let Ok(Err(error)) = timeout(LOOK, ready.wait()).await {
            return debug!("{error}");
        }
        sleep(GATHER).await;
        let heads = match last_ones(&mut seen) {
            Ok(heads) => heads,
            Err(error) => {
                return warn!("cannot read how responses begin any longer: {error}");
            }
        };
        counts.heads_told.fetch_add(heads.len() as u64, Relaxed);
        let lists = lists(heads);
        let fronts: Vec<Ipv4Addr> = wanted.borrow().fronts.clone();
        for (to, list) in fronts
            .iter()
            .flat_map(|to| lists.iter().map(|list| (*to, list)))
        {
            // If the receiving task has ended, the loop's condition notices it.
            let _ = outgoing.send(Outgoing::bare(to, Message::Heads(list.clone())));
        }
    }
}

/// Takes the heads seen since the last call and returns the last one of each connection, if it can be read as a head.
/// With it comes its request, if the response is long and this node keeps the request as the owner.
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
            // Without a pool, this node keeps the request only for its own work as a connection server.
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

/// Divides the heads among as many messages as they need. A head with a request has a message of its own.
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

/// Converts a connection's name in messages to its key in the maps.
pub fn key(name: &EntryKey) -> TcbKey {
    TcbKey {
        client: name.client.address.octets(),
        cluster: name.cluster.word(),
        be_client_port: name.client.port.to_be(),
        be_cluster_port: name.port.to_be(),
    }
}

/// Converts a connection's key in the maps to its name in messages; `None` if it has no valid cluster address.
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
