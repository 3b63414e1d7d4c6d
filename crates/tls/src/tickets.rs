//! Session tickets: what a server must know to resume a session, encrypted and kept by the client.
//!
//! ```text
//!  key's number: 8 bytes | nonce: 12 | what rustls wants to know again: encrypted | tag: 16
//! ```
//!
//! A session is resumed only for the service and the name that it began with. The service is authenticated with the
//! ticket, so at any other service of the same keys it is no ticket. The name (SNI) is in what rustls encrypts, and
//! rustls compares it, in TLS 1.3 and 1.2, as RFC 6066 asks in section 3. So a client that somebody leads to another
//! service or name gets a full handshake, and sees the certificate there. Clients have no certificates, so a ticket
//! gives nobody a right.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::server::ProducesTickets;

use crate::ticket_keys::{LIFETIME, TicketKey, TicketKeyRing};

/// A longer ticket cannot be one of these. rustls' content is about 100 bytes and the server's name.
const LONGEST: usize = 2048;

const NUMBER: usize = 8;

/// The keys with which all services of a process encrypt and decrypt tickets. They can change while handshakes are made.
/// A clone shares them.
#[derive(Clone, Debug, Default)]
pub struct TicketKeys(Arc<Mutex<Usable>>);

#[derive(Clone, Debug, Default)]
struct Usable {
    encrypting: Option<TicketKey>,
    decrypting: Arc<[TicketKey]>,
}

impl TicketKeys {
    /// Uses the keys of a ring from now on. Without a key that encrypts, clients get no tickets.
    pub fn follow(&self, ring: &TicketKeyRing, now: u64) {
        *self.locked() = Usable {
            encrypting: ring.encrypting(now).cloned(),
            decrypting: ring.all().cloned().collect(),
        };
    }

    fn locked(&self) -> MutexGuard<'_, Usable> {
        // The keys are replaced at once, so a panic leaves them as they were.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tickets of one service.
pub(crate) struct Tickets {
    keys: TicketKeys,
    /// What tells the service from others, the same at each data server.
    service: Vec<u8>,
}

impl Tickets {
    pub(crate) fn new(keys: TicketKeys, service: &[u8]) -> Self {
        let service = service.to_vec();
        Self { keys, service }
    }

    /// What is authenticated besides the content.
    fn bound_to(&self, number: [u8; NUMBER]) -> Aad<Vec<u8>> {
        Aad::from([&number[..], &self.service].concat())
    }
}

/// The cipher with this key; `None` never, because a key has the right length.
fn cipher(key: &TicketKey) -> Option<LessSafeKey> {
    let key = UnboundKey::new(&AES_256_GCM, key.secret()).ok()?;
    Some(LessSafeKey::new(key))
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        let usable = self.keys.locked();
        usable.encrypting.is_some() || !usable.decrypting.is_empty()
    }

    fn lifetime(&self) -> u32 {
        LIFETIME as u32 // some hours
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let key = self.keys.locked().encrypting.clone()?;
        let number = key.number();
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
        let tag = cipher(&key)?
            .seal_in_place_separate_tag(nonce, self.bound_to(number), sealed)
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
        let keys = Arc::clone(&self.keys.locked().decrypting);
        let mut of_this_number = keys.iter().filter(|key| key.number() == *number);
        of_this_number.find_map(|key| {
            let mut sealed = sealed.to_vec();
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let length = cipher(key)?
                .open_in_place(nonce, self.bound_to(*number), &mut sealed)
                .ok()?
                .len();
            sealed.truncate(length);
            Some(sealed)
        })
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let service = String::from_utf8_lossy(&self.service);
        f.debug_struct("Tickets")
            .field("keys", &self.keys)
            .field("service", &service)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticket_keys::NodeKeys;

    /// Tickets of a process that has made the first of these keys, and has heard of the others.
    fn tickets(service: &str, keys: &[(u8, u8)]) -> Tickets {
        let usable = TicketKeys::default();
        usable.follow(&ring(keys), 0);
        Tickets::new(usable, service.as_bytes())
    }

    fn ring(keys: &[(u8, u8)]) -> TicketKeyRing {
        let mut ring = TicketKeyRing::default();
        for (at, (number, secret)) in keys.iter().enumerate() {
            let key = [&[*number; 8][..], &[0; 8], &[*secret; 32]].concat();
            let node = [0, 0, 0, at as u8].into();
            ring.hear(node, NodeKeys::read(&key).unwrap(), 0);
        }
        ring
    }

    #[test]
    fn a_ticket_can_be_read_with_its_key_only() {
        let ticket = tickets("a", &[(1, 1)]).encrypt(b"a session").unwrap();
        assert_eq!(ticket[..NUMBER], [1; 8]);
        for (keys, can) in [
            (&[(1, 1)][..], true),
            (&[(2, 2), (3, 3), (1, 1)], true),
            (&[(2, 2), (3, 3)], false),
            (&[(1, 9)], false),
            (&[(1, 9), (1, 1)], true),
            (&[], false),
        ] {
            let plain = tickets("a", keys).decrypt(&ticket);
            assert_eq!(plain.is_some_and(|plain| plain == b"a session"), can);
        }
        assert_eq!(tickets("a", &[]).encrypt(b"a session"), None);
    }

    /// rustls would send clients tickets without content, which are of no use.
    #[test]
    fn without_a_key_there_are_no_tickets() {
        assert!(!tickets("a", &[]).enabled());
        assert!(tickets("a", &[(1, 1)]).enabled());
    }

    #[test]
    fn a_ticket_is_of_one_service() {
        let ticket = tickets("a", &[(1, 1)]).encrypt(b"a session").unwrap();
        for other in ["b", "", "aa"] {
            assert_eq!(tickets(other, &[(1, 1)]).decrypt(&ticket), None, "{other}");
        }
    }

    #[test]
    fn keys_change_while_they_are_used() {
        let one = tickets("a", &[(1, 1)]);
        let ticket = one.encrypt(b"a session").unwrap();
        one.keys.follow(&ring(&[(2, 2)]), 0);
        assert_eq!(one.decrypt(&ticket), None);
        one.keys.follow(&ring(&[(2, 2), (1, 1)]), 0);
        assert!(one.decrypt(&ticket).is_some());
        assert_eq!(one.encrypt(b"").unwrap()[..NUMBER], [2; 8]);
    }

    #[test]
    fn a_changed_ticket_is_none() {
        let keys = tickets("a", &[(1, 1)]);
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
        let keys = tickets("a", &[(1, 1)]);
        assert_ne!(keys.encrypt(b""), keys.encrypt(b""));
    }

    #[test]
    fn debug_output_has_no_secret() {
        let shown = format!("{:?} {:?}", tickets("a", &[(7, 0xa7)]), ring(&[(7, 0xa7)]));
        assert!(shown.contains("0707070707070707"), "{shown}");
        for secret in ["a7", "167"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}
