//! The sending direction in the kernel's hands (kTLS): the kernel makes the records, and the session still says what only
//! it knows, its alerts and when the key is worn out.
//!
//! No two records of a key may have one nonce (RFC 5116, section 5.1.1), whoever makes them. In TLS 1.3, and with
//! ChaCha20-Poly1305, a nonce follows from the record's number alone. With AES-GCM in TLS 1.2 a session makes it from the
//! number by one rule ([`Direction::nonce`]), and the kernel by another one: it adds one to the nonce before. So the kernel
//! begins with a nonce from which it never comes to one of a session's ([`Direction::counted_nonce`]).

use zeroize::Zeroizing;

use crate::direction::{Direction, RECORDS_MOST, key_and_iv};
use crate::record::RecordError;
use crate::session::{KEY_UPDATE_AFTER, Session, TLS12_ENDS_AFTER};
use crate::suite::{NONCE, Suite, Version};
use crate::transfer::ImportError;

/// All that the kernel needs to make records. It is overwritten when it is dropped.
pub struct SendingKey {
    /// The cipher suite.
    pub suite: Suite,
    /// The cipher's key.
    pub key: Zeroizing<Vec<u8>>,
    /// The IV. With AES-GCM in TLS 1.2 it is the nonce of the next record, of which the last eight bytes are sent along.
    pub iv: Zeroizing<[u8; NONCE]>,
    /// The number of the next record.
    pub sequence: u64,
}

/// What a session knows while the kernel makes its records.
#[derive(Debug)]
pub(crate) struct Offload {
    /// The number of the kernel's first record.
    first: u64,
    /// The alert that the kernel is to send behind all data.
    pub(crate) alert: Option<[u8; 2]>,
    /// Whether the key should be replaced, which the kernel is not asked to do.
    pub(crate) is_worn_out: bool,
}

impl Session {
    /// The key with which the kernel can make records from the next one on.
    pub fn sending_key(&self) -> SendingKey {
        self.sending.key_for_kernel()
    }

    /// Leaves the sending direction to the kernel, which has the [key](Self::sending_key). What [`send`](Self::send)
    /// appends is from now on data as it is, and an alert is in [`take_alert`](Self::take_alert).
    ///
    /// The session cannot be exported to go on elsewhere until [`reclaim_sending`](Self::reclaim_sending).
    pub fn offload_sending(&mut self) {
        self.offload = Some(Box::new(Offload {
            first: self.sending.sequence,
            alert: None,
            is_worn_out: self.update_requested,
        }));
        // An exported session with this number is refused.
        self.sending.sequence = RECORDS_MOST;
    }

    /// Takes the sending direction back from the kernel, whose next record would have the number `next`.
    ///
    /// # Errors
    /// No session has this number, or the kernel had a higher one before.
    pub fn reclaim_sending(&mut self, next: u64) -> Result<(), ImportError> {
        let first = self.offload.as_ref().map_or(RECORDS_MOST, |own| own.first);
        if !(first..RECORDS_MOST).contains(&next) {
            return Err(ImportError::Malformed("a record's number"));
        }
        self.offload = None;
        self.sending.sequence = next;
        Ok(())
    }

    /// Looks whether the kernel, whose next record has the number `next`, should have another key.
    ///
    /// # Errors
    /// [`RecordError::Exhausted`], if it has used its key for twice as many records as it should have.
    pub fn watch_offloaded(&mut self, next: u64) -> Result<(), RecordError> {
        let most = match self.version() {
            Version::Tls13 => KEY_UPDATE_AFTER,
            Version::Tls12 => TLS12_ENDS_AFTER,
        };
        if let Some(offload) = &mut self.offload {
            offload.is_worn_out |= next >= most;
        }
        match next < 2 * most {
            true => Ok(()),
            false => Err(RecordError::Exhausted),
        }
    }

    /// Whether the session is to end as soon as nothing is under way: the kernel's key is worn out, or the client has asked
    /// for another one, which the kernel is not asked to use.
    pub fn must_end(&self) -> bool {
        (self.offload.as_ref()).is_some_and(|offload| offload.is_worn_out)
    }

    /// The content of the alert that the kernel is to send now, behind all data.
    pub fn take_alert(&mut self) -> Option<[u8; 2]> {
        self.offload.as_mut()?.alert.take()
    }
}

impl Direction {
    pub(crate) fn key_for_kernel(&self) -> SendingKey {
        let (key, iv) = key_and_iv(self.suite, &self.material);
        let iv = match self.suite.has_explicit_nonce() {
            true => Zeroizing::new(self.counted_nonce()),
            false => iv,
        };
        SendingKey {
            suite: self.suite,
            key,
            iv,
            sequence: self.sequence,
        }
    }

    /// The nonce of the next record if nonces are counted. It differs from each nonce of [`nonce`](Self::nonce) in its
    /// fifth byte, which no number reaches, and counting it on for as many records as there can be changes only the last six
    /// bytes.
    fn counted_nonce(&self) -> [u8; NONCE] {
        let mut nonce = *self.iv;
        let (_, explicit) = nonce.split_at_mut(NONCE - 8);
        explicit[0] ^= 1 << 7;
        explicit[2..].copy_from_slice(&self.sequence.to_be_bytes()[2..]);
        nonce
    }
}
