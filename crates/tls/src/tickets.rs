//! Session tickets: what a server must know to resume a session, encrypted and kept by the client.
//!
//! ```text
//!  key's number: 8 bytes | nonce: 12 | what rustls wants to know again: encrypted | tag: 16
//! ```

use std::fmt;
use std::sync::Arc;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::server::ProducesTickets;

/// A ticket can be used for so long, seconds: 12 hours. TLS 1.3 allows at most a week (RFC 8446, section 4.6.1).
const LIFETIME: u32 = 12 * 60 * 60;

/// A longer ticket cannot be one of these. rustls' content is about 100 bytes and the server's name.
const LONGEST: usize = 2048;

const NUMBER: usize = 8;

/// A key of tickets.
#[derive(Clone)]
pub struct TicketKey {
    number: u64,
    key: LessSafeKey,
}

impl TicketKey {
    /// The key made from 32 random bytes. Its number tells it from the others, and clients see it. One key must not
    /// encrypt more than 2^32 tickets (NIST SP 800-38D, section 8.3), because their nonces are random.
    pub fn new(number: u64, secret: &[u8; 32]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, secret);
        Self {
            number,
            // It fails only for a key of another length.
            key: LessSafeKey::new(key.expect("AES-256 has a key of 32 bytes")),
        }
    }
}

impl fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketKey")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// The keys of tickets. All nodes that have the same ones resume each other's sessions.
///
/// Whoever has a key can read the sessions of TLS 1.2 that were resumed with its tickets (RFC 5077, section 5.5), so
/// keys should be replaced at least as often as tickets expire, every 12 hours.
#[derive(Clone, Debug)]
pub struct TicketKeys(Arc<[TicketKey]>);

impl TicketKeys {
    /// `current` encrypts new tickets. It and the others decrypt those that clients bring: earlier keys, whose tickets
    /// are still about, and the next one, which another node may use already.
    pub fn new(current: TicketKey, others: impl IntoIterator<Item = TicketKey>) -> Self {
        Self([current].into_iter().chain(others).collect())
    }
}

impl ProducesTickets for TicketKeys {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let TicketKey { number, key } = self.0.first()?;
        let number = number.to_be_bytes();
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let mut ticket =
            Vec::with_capacity(NUMBER + NONCE_LEN + plain.len() + AES_256_GCM.tag_len());
        ticket.extend(number);
        ticket.extend(nonce);
        ticket.extend(plain);
        let (nonce, sealed) = (
            Nonce::assume_unique_for_key(nonce),
            &mut ticket[NUMBER + NONCE_LEN..],
        );
        let tag = key
            .seal_in_place_separate_tag(nonce, Aad::from(number), sealed)
            .ok()?;
        ticket.extend(tag.as_ref());
        (ticket.len() <= LONGEST).then_some(ticket)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        if ticket.len() > LONGEST {
            return None;
        }
        let (number, rest) = ticket.split_first_chunk::<NUMBER>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let of_this_number = |key: &&TicketKey| key.number.to_be_bytes() == *number;
        self.0
            .iter()
            .filter(of_this_number)
            .find_map(|TicketKey { key, .. }| {
                let mut sealed = sealed.to_vec();
                let nonce = Nonce::assume_unique_for_key(*nonce);
                let length = key
                    .open_in_place(nonce, Aad::from(*number), &mut sealed)
                    .ok()?
                    .len();
                sealed.truncate(length);
                Some(sealed)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> TicketKey {
        TicketKey::new(number, &[number as u8; 32])
    }

    #[test]
    fn a_ticket_can_be_read_with_its_key_only() {
        let ticket = TicketKeys::new(key(1), []).encrypt(b"a session").unwrap();
        assert_eq!(ticket[..NUMBER], 1_u64.to_be_bytes());
        for (keys, can) in [
            (TicketKeys::new(key(1), []), true),
            (TicketKeys::new(key(2), [key(3), key(1)]), true),
            (TicketKeys::new(key(2), [key(3)]), false),
            (TicketKeys::new(TicketKey::new(1, &[9; 32]), []), false),
            (TicketKeys::new(TicketKey::new(1, &[9; 32]), [key(1)]), true),
        ] {
            assert_eq!(
                keys.decrypt(&ticket)
                    .is_some_and(|plain| plain == b"a session"),
                can,
                "{keys:?}"
            );
        }
    }

    #[test]
    fn a_changed_ticket_is_none() {
        let keys = TicketKeys::new(key(1), []);
        let ticket = keys.encrypt(b"a session").unwrap();
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(keys.decrypt(&changed), None, "byte {at}");
            assert_eq!(keys.decrypt(&ticket[..at]), None, "the first {at} bytes");
        }
        assert_eq!(keys.decrypt(&vec![0; LONGEST + 1]), None);
        assert_eq!(keys.encrypt(&vec![0; LONGEST]), None);
    }

    #[test]
    fn no_two_tickets_are_the_same() {
        let keys = TicketKeys::new(key(1), []);
        assert_ne!(keys.encrypt(b""), keys.encrypt(b""));
    }

    #[test]
    fn debug_output_has_no_secret() {
        let keys = TicketKeys::new(TicketKey::new(7, &[0xa7; 32]), []);
        assert_eq!(
            format!("{keys:?}"),
            "TicketKeys([TicketKey { number: 7, .. }])"
        );
    }
}
