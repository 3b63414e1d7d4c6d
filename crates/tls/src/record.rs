//! Records: how content becomes one, and is read from one.
//!
//! ```text
//!  TLS 1.3:  23    | 3, 3 | length | content, type, zeros: encrypted      | tag     RFC 8446, section 5.2
//!  TLS 1.2:  type  | 3, 3 | length | explicit nonce | content: encrypted  | tag     RFC 5246, section 6.2.3.3
//! ```

use ring::aead::{Aad, MAX_TAG_LEN, Nonce};

use crate::alert::Alert;
use crate::direction::{Direction, RECORDS_MOST};
use crate::suite::{NONCE, Version};

/// The most bytes of content in one record (RFC 8446, section 5.1).
pub const LONGEST_PLAIN: usize = 1 << 14;

/// The length of a record's header.
pub(crate) const HEADER: usize = 5;

/// The version that every record names, whichever of the two it belongs to.
const VERSION: [u8; 2] = [3, 3];

/// The length of the nonce's explicit part, where there is one.
pub(crate) const EXPLICIT: usize = 8;

/// The type of a record's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Alert = 21,
    Handshake = 22,
    Data = 23,
}

/// Why a session cannot go on. Unless the client ended it, the client has been sent an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// What the client sent is against the protocol, or has been tampered with.
    #[error(
        "the client's TLS record was refused because {why}, and the client was sent the alert {alert}"
    )]
    Refused {
        /// The alert that the client has been sent.
        alert: Alert,
        /// What was wrong, as the end of a sentence that ends in "because".
        why: &'static str,
    },
    /// The client ended the session with an alert.
    #[error("the client ended its TLS session with the alert {0}")]
    Alerted(Alert),
    /// The key may protect no more records, and nobody can change it: TLS 1.2 has no way to, and the kernel is not asked to.
    /// If the session makes the records itself, the client has been sent close_notify.
    #[error("the TLS session's key has protected so many records that it must not protect more")]
    Exhausted,
    /// The session has been ended before, by an error or by [`Session::close`](crate::Session::close).
    #[error("the TLS session has ended already")]
    Ended,
}

pub(crate) fn refused(alert: Alert, why: &'static str) -> RecordError {
    RecordError::Refused { alert, why }
}

impl Direction {
    /// Appends a record with this content, of at most [`LONGEST_PLAIN`] bytes.
    pub(crate) fn seal(&mut self, content: Content, plain: &[u8], output: &mut Vec<u8>) {
        debug_assert!(plain.len() <= LONGEST_PLAIN && self.sequence < RECORDS_MOST);
        let start = output.len();
        let nonce = self.nonce();
        output.reserve(HEADER + EXPLICIT + plain.len() + 1 + MAX_TAG_LEN);
        output.extend([content as u8, VERSION[0], VERSION[1], 0, 0]);
        if self.suite.has_explicit_nonce() {
            output.extend(&nonce[NONCE - EXPLICIT..]);
        }
        let body = output.len();
        output.extend(plain);
        if self.suite.version() == Version::Tls13 {
            output[start] = Content::Data as u8;
            output.push(content as u8);
        }
        let length = output.len() - start - HEADER + self.suite.cipher().tag_len();
        output[start + 3..start + HEADER].copy_from_slice(&(length as u16).to_be_bytes()); // below 2^15

        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = match self.suite.version() {
            Version::Tls13 => {
                let header = [
                    output[start],
                    VERSION[0],
                    VERSION[1],
                    output[start + 3],
                    output[start + 4],
                ];
                let sealed = &mut output[body..];
                self.key
                    .seal_in_place_separate_tag(nonce, Aad::from(header), sealed)
            }
            Version::Tls12 => {
                let data = self.additional_data(content as u8, plain.len());
                self.key
                    .seal_in_place_separate_tag(nonce, Aad::from(data), &mut output[body..])
            }
        };
        // It fails only for more bytes than the cipher can take, which are 64 GiB.
        output.extend(tag.expect("a record is short").as_ref());
        self.sequence += 1;
    }

    /// The length of the record that begins `input`, with its header, if all of it is there.
    ///
    /// # Errors
    /// No record can begin like this.
    pub(crate) fn whole(&self, input: &[u8]) -> Result<Option<usize>, RecordError> {
        let &[kind, major, minor, high, low, ..] = input else {
            return Ok(None);
        };
        let (may_be, longest) = match self.suite.version() {
            Version::Tls13 => (kind == Content::Data as u8, LONGEST_PLAIN + 256),
            Version::Tls12 => (Content::of(kind).is_some(), LONGEST_PLAIN + 2048),
        };
        if !may_be {
            return Err(refused(
                Alert::UNEXPECTED_MESSAGE,
                "its type cannot occur after the handshake",
            ));
        }
        if [major, minor] != VERSION {
            return Err(refused(
                Alert::PROTOCOL_VERSION,
                "it names another version than 3.3",
            ));
        }
        let length = usize::from(u16::from_be_bytes([high, low]));
        if length > longest {
            return Err(refused(
                Alert::RECORD_OVERFLOW,
                "it is longer than a record can be",
            ));
        }
        Ok((input.len() >= HEADER + length).then_some(HEADER + length))
    }

    /// Reads a record that is [whole](Self::whole), in place.
    ///
    /// # Errors
    /// It is not the next record, or nothing that may be in one. What is left in its place is not to be used.
    pub(crate) fn open<'a>(
        &mut self,
        record: &'a mut [u8],
    ) -> Result<(Content, &'a [u8]), RecordError> {
        const FORGED: RecordError = RecordError::Refused {
            alert: Alert::BAD_RECORD_MAC,
            why: "it cannot be decrypted with the session's key",
        };
        if self.sequence + 1 >= RECORDS_MOST {
            return Err(refused(
                Alert::INTERNAL_ERROR,
                "the session has had too many records",
            ));
        }
        let (header, mut sealed) = record.split_at_mut(HEADER);
        let mut nonce = self.nonce();
        if self.suite.has_explicit_nonce() {
            let (explicit, rest) = sealed.split_at_mut_checked(EXPLICIT).ok_or(FORGED)?;
            nonce[NONCE - EXPLICIT..].copy_from_slice(explicit);
            sealed = rest;
        }
        let nonce = Nonce::assume_unique_for_key(nonce);
        let length = sealed
            .len()
            .checked_sub(self.suite.cipher().tag_len())
            .ok_or(FORGED)?;
        let plain: &[u8] = match self.suite.version() {
            Version::Tls13 => self.key.open_in_place(nonce, Aad::from(&*header), sealed),
            Version::Tls12 => {
                let data = self.additional_data(header[0], length);
                self.key.open_in_place(nonce, Aad::from(data), sealed)
            }
        }
        .map_err(|_| FORGED)?;
        self.sequence += 1;
        let (kind, plain) = match self.suite.version() {
            Version::Tls13 => unpad(plain)?,
            Version::Tls12 => (header[0], plain),
        };
        if plain.len() > LONGEST_PLAIN {
            return Err(refused(
                Alert::RECORD_OVERFLOW,
                "its content is longer than content can be",
            ));
        }
        let content = Content::of(kind);
        let content = content.ok_or(refused(
            Alert::UNEXPECTED_MESSAGE,
            "its content is of an unknown type",
        ))?;
        Ok((content, plain))
    }

    /// What TLS 1.2 authenticates besides the content (RFC 5246, section 6.2.3.3).
    fn additional_data(&self, kind: u8, length: usize) -> [u8; 13] {
        let mut data = [0; 13];
        data[..8].copy_from_slice(&self.sequence.to_be_bytes());
        data[8] = kind;
        data[9..11].copy_from_slice(&VERSION);
        data[11..].copy_from_slice(&(length as u16).to_be_bytes()); // a record's length has 16 bits
        data
    }
}

impl Content {
    fn of(kind: u8) -> Option<Self> {
        [Self::Alert, Self::Handshake, Self::Data]
            .into_iter()
            .find(|content| *content as u8 == kind)
    }
}

/// Splits a TLSInnerPlaintext of TLS 1.3 into its type and content, without the zeros behind (RFC 8446, section 5.4).
fn unpad(inner: &[u8]) -> Result<(u8, &[u8]), RecordError> {
    if inner.len() > LONGEST_PLAIN + 1 {
        return Err(refused(
            Alert::RECORD_OVERFLOW,
            "its content and padding are longer than they can be",
        ));
    }
    let end = inner.iter().rposition(|&byte| byte != 0);
    let end = end.ok_or(refused(
        Alert::UNEXPECTED_MESSAGE,
        "it has padding and no content",
    ))?;
    Ok((inner[end], &inner[..end]))
}
