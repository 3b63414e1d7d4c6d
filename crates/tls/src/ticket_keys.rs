//! Which keys of tickets a data server knows, and for how long.
//!
//! Each data server makes keys of its own, encrypts tickets with the newest of them, and tells all of them to the others,
//! which use them only to decrypt. So the data servers need not agree on anything.
//!
//! A key is known until it is 18 hours old, wherever it is. Nothing but that takes a key away: rings are merged, so it
//! does not matter who has told a key, in which order, or how often.
//!
//! Times are seconds since 1970, by the clock of the host.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;

use ring::rand::{SecureRandom as _, SystemRandom};
use zeroize::Zeroizing;

const HOUR: u64 = 60 * 60;

/// A ticket can be used for so long. TLS 1.3 allows at most a week (RFC 8446, section 4.6.1).
pub(crate) const LIFETIME: u64 = 12 * HOUR;

/// A key encrypts until it is so old. One key must not encrypt more than 2^32 tickets (NIST SP 800-38D, section 8.3),
/// because their nonces are random: that is 198,000 a second.
const RENEWED: u64 = 6 * HOUR;

/// A key is forgotten when it is so old. The last of its tickets has then expired.
const KNOWN: u64 = RENEWED + LIFETIME;

/// A new key does not encrypt before it is so old if there is an older one: the other data servers know it by then.
pub(crate) const SPREADS: u64 = 30;

/// A key that was made so far in the future is none: a clock is wrong, here or at the data server that has made it.
const AHEAD: u64 = HOUR;

/// A key of tickets: 32 random bytes, and the 8 that tell it from others. Clients see these 8 in tickets.
/// Clones share them, so they are at one place of the memory, which is overwritten in the end.
#[derive(Clone)]
pub(crate) struct TicketKey(Arc<Zeroizing<[u8; TicketKey::LENGTH]>>);

impl TicketKey {
    /// Number: 8 bytes; when it was made: 8; secret: 32.
    const LENGTH: usize = 8 + 8 + 32;

    /// Makes a key. `None` if the kernel gives no random bytes, which it always does once it has begun to.
    fn make(now: u64) -> Option<Self> {
        let mut key = Self(Arc::new(Zeroizing::new([0; Self::LENGTH])));
        let bytes = Arc::get_mut(&mut key.0)?; // there is no clone yet
        SystemRandom::new().fill(&mut **bytes).ok()?;
        bytes[8..16].copy_from_slice(&now.to_be_bytes());
        Some(key)
    }

    fn read(bytes: &[u8; Self::LENGTH]) -> Option<Self> {
        let mut key = Self(Arc::new(Zeroizing::new([0; Self::LENGTH])));
        Arc::get_mut(&mut key.0)?.copy_from_slice(bytes); // there is no clone yet
        Some(key)
    }

    fn part<const LENGTH: usize>(&self, at: usize) -> [u8; LENGTH] {
        std::array::from_fn(|index| self.0[at + index])
    }

    /// What tells it from others.
    pub(crate) fn number(&self) -> [u8; 8] {
        self.part(0)
    }

    /// Its 32 random bytes.
    pub(crate) fn secret(&self) -> &[u8] {
        &self.0[16..]
    }

    fn made(&self) -> u64 {
        u64::from_be_bytes(self.part(8))
    }

    fn age(&self, now: u64) -> u64 {
        now.saturating_sub(self.made())
    }

    fn is_known(&self, now: u64) -> bool {
        self.age(now) < KNOWN && self.made() <= now.saturating_add(AHEAD)
    }
}

/// The secret stays out of it.
impl fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.number()))
    }
}

/// The keys that one data server has made, the newest first.
#[derive(Clone, Debug, Default)]
pub struct NodeKeys(Vec<TicketKey>);

impl NodeKeys {
    /// At most this many keys of a data server are known. If there are more, the oldest are forgotten.
    const MOST: usize = 8;

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The keys as bytes, for the other data servers.
    pub fn write(&self) -> Zeroizing<Vec<u8>> {
        let mut text = Zeroizing::new(Vec::with_capacity(self.0.len() * TicketKey::LENGTH));
        self.write_to(&mut text);
        text
    }

    fn write_to(&self, text: &mut Vec<u8>) {
        for key in &self.0 {
            text.extend_from_slice(&**key.0);
        }
    }

    /// The keys that [`NodeKeys::write`] made these bytes of; `None` if they are none.
    pub fn read(text: &[u8]) -> Option<Self> {
        let (keys, rest) = text.as_chunks();
        if !rest.is_empty() || keys.len() > Self::MOST {
            return None;
        }
        keys.iter()
            .map(TicketKey::read)
            .collect::<Option<_>>()
            .map(Self)
    }

    /// Adds those of the keys that are known at this time. Returns whether one is new.
    fn merge(&mut self, other: Self, now: u64) -> bool {
        let numbers = |keys: &[TicketKey]| keys.iter().map(TicketKey::number).collect::<Vec<_>>();
        let before = numbers(&self.0);
        for key in other.0 {
            if key.is_known(now) && !self.0.iter().any(|one| one.number() == key.number()) {
                self.0.push(key);
            }
        }
        self.0
            .sort_by_key(|key| std::cmp::Reverse((key.made(), key.number())));
        self.0.truncate(Self::MOST);
        before != numbers(&self.0)
    }
}

/// All keys that a data server knows.
#[derive(Clone, Debug, Default)]
pub struct TicketKeyRing {
    /// The keys by the data server that has made them. There is no empty list.
    nodes: BTreeMap<Ipv4Addr, NodeKeys>,
}

impl TicketKeyRing {
    /// The own keys are filed under this address, which no data server has.
    pub const OWN: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
    /// At most this many data servers have keys here; a configuration has 256.
    const MOST: usize = 512;

    /// The own keys.
    pub fn own(&self) -> Option<&NodeKeys> {
        self.nodes.get(&Self::OWN)
    }

    /// Makes a key if none of the own keys is new enough. Returns whether it has made one.
    pub fn renew(&mut self, now: u64) -> bool {
        let newest = self.own().and_then(|own| own.0.first());
        if newest.is_some_and(|key| key.age(now) < RENEWED) {
            return false;
        }
        match TicketKey::make(now) {
            Some(key) => self.hear(Self::OWN, NodeKeys(vec![key]), now),
            None => false,
        }
    }

    /// Adds keys of a data server. Returns whether one is new.
    pub fn hear(&mut self, node: Ipv4Addr, keys: NodeKeys, now: u64) -> bool {
        if self.nodes.len() >= Self::MOST && !self.nodes.contains_key(&node) {
            return false;
        }
        let of_node = self.nodes.entry(node).or_default();
        let is_new = of_node.merge(keys, now);
        if of_node.is_empty() {
            self.nodes.remove(&node);
        }
        is_new
    }

    /// Adds what another ring of the same data server has. Returns whether something is new.
    pub fn merge(&mut self, other: Self, now: u64) -> bool {
        let mut is_new = false;
        for (node, keys) in other.nodes {
            is_new |= self.hear(node, keys, now);
        }
        is_new
    }

    /// Forgets the keys that are too old. Returns whether there was one.
    pub fn forget(&mut self, now: u64) -> bool {
        let before = self.all().count();
        for keys in self.nodes.values_mut() {
            keys.0.retain(|key| key.is_known(now));
        }
        self.nodes.retain(|_, keys| !keys.is_empty());
        before != self.all().count()
    }

    /// The key that encrypts tickets.
    pub(crate) fn encrypting(&self, now: u64) -> Option<&TicketKey> {
        let own = &self.own()?.0;
        let mut spread = own.iter().filter(|key| key.age(now) >= SPREADS);
        spread.next().or(own.first())
    }

    /// The keys that decrypt tickets: all.
    pub(crate) fn all(&self) -> impl Iterator<Item = &TicketKey> {
        self.nodes.values().flat_map(|keys| &keys.0)
    }

    /// The ring as bytes, for a process of the same data server. For each node: its address, 4 bytes; how many keys it
    /// has, 1; its keys.
    pub fn write_to(&self, text: &mut Vec<u8>) {
        let length = |keys: &NodeKeys| 5 + keys.0.len() * TicketKey::LENGTH;
        // Were it to grow, it would leave copies of secrets behind.
        text.reserve(self.nodes.values().map(length).sum());
        for (node, keys) in &self.nodes {
            text.extend(node.octets());
            text.push(keys.0.len() as u8); // at most NodeKeys::MOST
            keys.write_to(text);
        }
    }

    /// The ring that [`TicketKeyRing::write_to`] made these bytes of; `None` if they are none.
    pub fn read(mut text: &[u8]) -> Option<Self> {
        let mut nodes = BTreeMap::new();
        while !text.is_empty() {
            let ([a, b, c, d, count], rest) = text.split_first_chunk()?;
            let length = usize::from(*count) * TicketKey::LENGTH;
            let (keys, rest) = rest.split_at_checked(length)?;
            let keys = NodeKeys::read(keys).filter(|keys| !keys.is_empty())?;
            let before = nodes.insert(Ipv4Addr::new(*a, *b, *c, *d), keys);
            if before.is_some() || nodes.len() > Self::MOST {
                return None;
            }
            text = rest;
        }
        Some(Self { nodes })
    }
}
