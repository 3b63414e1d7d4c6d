//! HEAD: how responses begin. The data server that sends them reports this while it still can.

use std::num::{NonZeroU32, NonZeroU64};

use baton_abi::{LCCP_MAX_BODY, LccpHead, LccpHeads, TOLD_BYTES};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::{Address, Endpoint, EntryKey, ShortAddress};

/// Tells the head of a response from others: a digest of those parts of it that were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeadDigest {
    value: NonZeroU64,
    unseen: u16,
}

impl HeadDigest {
    /// A digest of a head whose parts in `unseen` (bits of `enum head_part`) are unknown.
    pub const fn new(value: NonZeroU64, unseen: u16) -> Self {
        Self { value, unseen }
    }

    /// A digest of a head that is known completely.
    pub const fn whole(value: NonZeroU64) -> Self {
        Self::new(value, 0)
    }

    /// The digest itself.
    pub const fn value(self) -> u64 {
        self.value.get()
    }

    /// The parts that are not in the digest, as bits of `enum head_part`.
    pub const fn unseen(self) -> u16 {
        self.unseen
    }

    /// Reads a digest. Returns `None` for a digest of 0, which stands for an unknown head.
    pub(crate) fn read(be_value: u64, be_unseen: u16) -> Option<Self> {
        let value = NonZeroU64::new(u64::from_be(be_value))?;
        Some(Self::new(value, u16::from_be(be_unseen)))
    }
}

/// How one response begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The connection of the response.
    pub key: EntryKey,
    /// TCP sequence number of the response's first byte.
    pub start: u32,
    /// The digest that tells its head from others.
    pub digest: HeadDigest,
    /// The length of head and body together, bytes, if the response has a body; `None`: unknown.
    pub length: Option<NonZeroU32>,
    /// Which response it is of those that its data server began on this connection, from 1 on, modulo 256; `None`:
    /// unknown.
    pub number: Option<u8>,
}

/// The request that a response answers, as its client sent it: the whole request, in one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnsweredRequest {
    /// TCP sequence number of the request's first byte.
    pub seq: u32,
    /// Lower half of the id of the pool that the request is for; 0: unknown.
    pub pool: u32,
    /// The request: at least one byte, and at most [`Heads::LONGEST_REQUEST`].
    pub text: Vec<u8>,
}

/// A list of heads that fits one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heads {
    heads: Vec<Head>,
    /// The request that is answered, if there is only one head in the list.
    request: Option<AnsweredRequest>,
}

impl Heads {
    /// How many heads one message holds: what fits `LCCP_MAX_BODY`.
    pub const MAX: usize =
        (LCCP_MAX_BODY as usize - size_of::<LccpHeads>()) / size_of::<LccpHead>();

    /// The longest request that is sent with the head of its response, bytes.
    pub const LONGEST_REQUEST: usize = TOLD_BYTES as usize;

    /// As many lists as `heads` need; no list if there are none.
    pub fn lists(heads: &[Head]) -> Vec<Self> {
        let list = |some: &[Head]| Self {
            heads: some.to_vec(),
            request: None,
        };
        heads.chunks(Self::MAX).map(list).collect()
    }

    /// A list of one head with the request that its response answers. The request is left out if it is empty or longer
    /// than a message can hold.
    pub fn with_request(head: Head, request: AnsweredRequest) -> Self {
        let fits = (1..=Self::LONGEST_REQUEST).contains(&request.text.len());
        Self {
            heads: vec![head],
            request: fits.then_some(request),
        }
    }

    /// The heads of the list. If two are of the same connection, the later one counts.
    pub fn get(&self) -> &[Head] {
        &self.heads
    }

    /// The head and the request, if the list has one head and its request.
    pub fn request(&self) -> Option<(&Head, &AnsweredRequest)> {
        self.heads.first().zip(self.request.as_ref())
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let bytes = self
            .request
            .as_ref()
            .map_or(0, |request| request.text.len());
        let count = LccpHeads {
            be_heads: (self.heads.len() as u16).to_be(), // at most MAX
            be_request_bytes: (bytes as u16).to_be(),    // at most LONGEST_REQUEST
            be_request_seq: self
                .request
                .as_ref()
                .map_or(0, |request| request.seq)
                .to_be(),
        };
        let mut body = count.as_bytes().to_vec();
        let pool = self.request.as_ref().map_or(0, |request| request.pool);
        for head in &self.heads {
            body.extend_from_slice(wire(head, pool).as_bytes());
        }
        if let Some(request) = &self.request {
            body.extend_from_slice(&request.text);
        }
        body
    }

    /// Reads a body. Returns `None` if there are fewer heads than it says, or none, or if nothing is known of one of
    /// them. It also returns `None` if a request is incomplete or comes with several heads.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let (count, mut rest) = LccpHeads::read_from_prefix(body).ok()?;
        let (mut heads, mut pool) = (Vec::new(), 0);
        for _ in 0..u16::from_be(count.be_heads) {
            let (head, behind) = LccpHead::read_from_prefix(rest).ok()?;
            heads.push(read(&head)?);
            (rest, pool) = (behind, u32::from_be(head.be_pool));
        }
        let text = rest.get(..usize::from(u16::from_be(count.be_request_bytes)))?;
        let request = (!text.is_empty()).then(|| AnsweredRequest {
            seq: u32::from_be(count.be_request_seq),
            pool,
            text: text.to_vec(),
        });
        let fits = text.len() <= Self::LONGEST_REQUEST && (text.is_empty() || heads.len() == 1);
        (fits && !heads.is_empty() && heads.len() <= Self::MAX).then_some(Self { heads, request })
    }
}

fn wire(head: &Head, pool: u32) -> LccpHead {
    LccpHead {
        client: head.key.client.address.octets(),
        cluster: head.key.cluster.word(),
        be_client_port: head.key.client.port.to_be(),
        be_cluster_port: head.key.port.to_be(),
        be_digest: head.digest.value().to_be(),
        be_response_start: head.start.to_be(),
        be_length: head.length.map_or(0, NonZeroU32::get).to_be(),
        be_unseen: head.digest.unseen().to_be(),
        is_counted: head.number.is_some().into(),
        number: head.number.unwrap_or_default(),
        be_pool: pool.to_be(),
    }
}

fn read(head: &LccpHead) -> Option<Head> {
    Some(Head {
        key: EntryKey {
            client: Endpoint {
                address: Address::from_octets(head.client),
                port: u16::from_be(head.be_client_port),
            },
            cluster: ShortAddress::from_word(head.cluster)?,
            port: u16::from_be(head.be_cluster_port),
        },
        start: u32::from_be(head.be_response_start),
        digest: HeadDigest::read(head.be_digest, head.be_unseen)?,
        length: NonZeroU32::new(u32::from_be(head.be_length)),
        number: (head.is_counted == 1).then_some(head.number),
    })
}
