//! How responses begin, as data servers have told it. The capacity is that of the map in which the program keeps
//! requests.

use std::collections::HashMap;

use baton_wire::{EntryKey, Head};

/// The heads that were told last, one for each connection, in two generations.
pub struct ResponseHeads {
    /// How many heads each generation holds at most.
    most: usize,
    young: HashMap<EntryKey, Head>,
    /// The previous generation. It is dropped, and `young` takes its place, when `young` is full.
    old: HashMap<EntryKey, Head>,
}

impl ResponseHeads {
    /// Makes a store that remembers at least the last `capacity` heads, and at most twice as many.
    pub fn new(capacity: u32) -> Self {
        Self {
            most: capacity as usize,
            young: HashMap::new(),
            old: HashMap::new(),
        }
    }

    /// Takes note of how a response begins.
    pub fn note(&mut self, head: &Head) {
        if self.young.len() >= self.most && !self.young.contains_key(&head.key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(head.key, *head);
    }

    /// Returns the head of this connection's last response, if that response begins at `start`.
    pub fn get(&self, key: &EntryKey, start: u32) -> Option<Head> {
        let head = self.last(key)?;
        (head.start == start).then_some(*head)
    }

    /// Whether the last known response of this connection began before `at` and, as far as is known, does not end
    /// before or at `at`. If so, a request whose response is to begin at `at` was sent in the middle of that response.
    pub fn is_under_way(&self, key: &EntryKey, at: u32) -> bool {
        let Some(head) = self.last(key) else {
            return false;
        };
        let come = at.wrapping_sub(head.start);
        // Sequence numbers wrap: half of them count as later than any given one, half as earlier.
        let began_before = come.cast_signed() > 0;
        began_before && head.length.is_none_or(|length| come < length.get())
    }

    /// How many heads are remembered, counting both generations.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// The last head of this connection.
    fn last(&self, key: &EntryKey) -> Option<&Head> {
        self.young.get(key).or_else(|| self.old.get(key))
    }
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, num::NonZeroU64};

    use baton_abi::TcbKey;
    use baton_wire::HeadDigest;

    use super::*;
    use crate::resume::heads::name;

    fn head(port: u16, start: u32) -> Head {
        let at = |port| std::net::SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        Head {
            key: name(&TcbKey::of(at(port), at(80))).unwrap_or_else(|| panic!("an address")),
            start,
            digest: HeadDigest::whole(NonZeroU64::MIN.saturating_add(start.into())),
            length: None,
            number: None,
        }
    }

    #[test]
    fn the_last_of_each_connection_is_known_by_its_beginning() {
        let mut told = ResponseHeads::new(2);
        told.note(&head(1, 7));
        told.note(&head(1, 9));
        assert_eq!(told.get(&head(1, 0).key, 7), None);
        assert_eq!(told.get(&head(1, 0).key, 9), Some(head(1, 9)));
        assert_eq!(told.get(&head(2, 0).key, 9), None);
    }

    #[test]
    fn a_response_is_under_way_until_its_last_byte() {
        let mut told = ResponseHeads::new(2);
        let key = head(1, 0).key;
        assert!(!told.is_under_way(&key, 9));
        let start = u32::MAX - 5;
        let long = Head {
            length: std::num::NonZeroU32::new(100),
            ..head(1, start)
        };
        told.note(&long);
        for (come, is_under_way) in [
            (0, false),
            (1, true),
            (99, true),
            (100, false),
            (101, false),
        ] {
            let at = start.wrapping_add(come);
            assert_eq!(told.is_under_way(&key, at), is_under_way, "{come}");
        }
        assert!(!told.is_under_way(&key, start.wrapping_sub(1)));
        // A response of unknown length is never taken to be over.
        told.note(&head(1, start));
        assert!(told.is_under_way(&key, start.wrapping_add(1 << 30)));
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut told = ResponseHeads::new(10);
        for port in 1..=1000 {
            told.note(&head(port, 5));
            assert!(told.len() <= 20);
            let first = port.saturating_sub(9).max(1);
            assert!((first..=port).all(|port| told.get(&head(port, 0).key, 5).is_some()));
        }
        assert_eq!(told.get(&head(1, 0).key, 5), None);
    }
}
