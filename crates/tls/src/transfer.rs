//! A session as bytes, for another machine. All numbers are big-endian.
//!
//! ```text
//!  format's version: 1 byte | suite: 2 | which ends are over, and whether a key update was requested: 1 | limits: 3
//!  receiving: number of the next record: 8 | material, whose length follows from the suite; then sending: the same
//!  three texts: part of a handshake message, server's name, protocol. Each: whether there is one: 1 | length: 1 | text
//! ```
//!
//! The bytes hold the session's secrets, and nothing in them shows that they are genuine. Whoever carries them keeps
//! them secret and unchanged. A session must go on at one machine only: two would protect different data with the same
//! key and nonce, which gives both away (RFC 5116, section 5.1.1).

use zeroize::Zeroizing;

use crate::direction::Direction;
use crate::limits::Limits;
use crate::post_handshake::Partial;
use crate::session::{Ends, Session};
use crate::suite::{Suite, Version};

/// The version of the format. A machine of another version cannot go on with a session, and says so.
const FORMAT: u8 = 1;

/// The number of the bit that says whether the client has asked for another key. It is behind those of [`Ends::bits`].
const UPDATE_REQUESTED: u8 = 3;

/// An upper bound of the length without the three texts, so that secrets are written only once into memory.
const LONGEST_WITHOUT_TEXTS: usize = 128;

/// These bytes are no session that can go on here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// The bytes are of another version of the format.
    #[error(
        "a TLS session came in version {0} of its format, and this program reads only version {FORMAT}: both machines \
         must run the same version of it"
    )]
    Format(u8),
    /// The suite is none of this program's.
    #[error("a TLS session came with the cipher suite {0:#06x}, which this program does not have")]
    Suite(u16),
    /// The bytes end too soon, go on too long, or say what no session says.
    #[error(
        "a TLS session came with {0} that no session has: the bytes were damaged, or were never one"
    )]
    Malformed(&'static str),
}

impl Session {
    /// The session as bytes, from which another machine can [import](Self::import) it. What has come and is no whole
    /// record yet, and what has not been sent yet, is with the caller and must move along. While the kernel makes its
    /// records, a session can go nowhere: the bytes of such a one are refused.
    ///
    /// The bytes hold the session's secrets. They are overwritten when they are dropped.
    #[must_use = "the session is gone but for these bytes"]
    pub fn export(self) -> Zeroizing<Vec<u8>> {
        let texts = [
            Some(self.partial.bytes()),
            self.server_name.as_deref().map(str::as_bytes),
            self.alpn.as_deref(),
        ];
        let length: usize = texts.iter().flatten().map(|text| text.len()).sum();
        let mut bytes = Zeroizing::new(Vec::with_capacity(LONGEST_WITHOUT_TEXTS + length));
        bytes.push(FORMAT);
        bytes.extend(self.suite().number().to_be_bytes());
        bytes.push(self.ends.bits() | u8::from(self.update_requested) << UPDATE_REQUESTED);
        bytes.extend([
            self.limits.empty,
            self.limits.key_updates,
            self.limits.warnings,
        ]);
        for direction in [&self.receiving, &self.sending] {
            bytes.extend(direction.sequence.to_be_bytes());
            bytes.extend_from_slice(&direction.material);
        }
        for text in texts {
            bytes.push(text.is_some().into());
            // A name has at most 255 bytes (RFC 1035, section 2.3.4), and a protocol too (RFC 7301, section 3.1).
            let text = &text.unwrap_or_default()[..text.unwrap_or_default().len().min(255)];
            bytes.push(text.len() as u8);
            bytes.extend(text);
        }
        bytes
    }

    /// The session that was exported to these bytes.
    ///
    /// # Errors
    /// [`ImportError`].
    pub fn import(bytes: &[u8]) -> Result<Self, ImportError> {
        let mut bytes = Reader(bytes);
        match bytes.byte()? {
            FORMAT => {}
            other => return Err(ImportError::Format(other)),
        }
        let number = u16::from_be_bytes(bytes.array()?);
        let suite = Suite::of_number(number).ok_or(ImportError::Suite(number))?;
        let state = bytes.byte()?;
        let update_requested = state & 1 << UPDATE_REQUESTED != 0;
        let ends = Ends::of_bits(state & !(1 << UPDATE_REQUESTED));
        let ends = ends.ok_or(ImportError::Malformed("a state"))?;
        if suite.version() == Version::Tls12 && update_requested {
            return Err(ImportError::Malformed("a state"));
        }
        let [empty, key_updates, warnings] = bytes.array()?;
        let receiving = bytes.direction(suite)?;
        let sending = bytes.direction(suite)?;
        let partial = bytes.text()?.and_then(Partial::of);
        let partial = partial.ok_or(ImportError::Malformed("a part of a message"))?;
        if suite.version() == Version::Tls12 && !partial.is_none() {
            return Err(ImportError::Malformed("a part of a message"));
        }
        let server_name = bytes
            .text()?
            .map(|name| String::from_utf8(name.to_vec()))
            .transpose();
        let server_name = server_name.map_err(|_| ImportError::Malformed("a server's name"))?;
        let alpn = bytes.text()?.map(<[u8]>::to_vec);
        match bytes.0 {
            [] => Ok(Self {
                server_name,
                alpn,
                receiving,
                sending,
                partial,
                limits: Limits {
                    empty,
                    key_updates,
                    warnings,
                },
                ends,
                update_requested,
                offload: None,
            }),
            _ => Err(ImportError::Malformed("more bytes")),
        }
    }
}

impl Ends {
    fn bits(self) -> u8 {
        u8::from(self.client_closed) | u8::from(self.closed) << 1 | u8::from(self.failed) << 2
    }

    fn of_bits(bits: u8) -> Option<Self> {
        let ends = Self {
            client_closed: bits & 1 != 0,
            closed: bits & 2 != 0,
            failed: bits & 4 != 0,
        };
        (ends.bits() == bits).then_some(ends)
    }
}

/// The bytes that have not been read yet.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, length: usize) -> Result<&'a [u8], ImportError> {
        let (bytes, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(ImportError::Malformed("fewer bytes"))?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ImportError> {
        let (array, rest) = self
            .0
            .split_first_chunk()
            .ok_or(ImportError::Malformed("fewer bytes"))?;
        self.0 = rest;
        Ok(*array)
    }

    fn byte(&mut self) -> Result<u8, ImportError> {
        self.array().map(|[byte]| byte)
    }

    fn direction(&mut self, suite: Suite) -> Result<Direction, ImportError> {
        let sequence = u64::from_be_bytes(self.array()?);
        let material = Zeroizing::new(self.bytes(suite.material_length())?.to_vec());
        Direction::new(suite, material, sequence).ok_or(ImportError::Malformed("a record's number"))
    }

    fn text(&mut self) -> Result<Option<&'a [u8]>, ImportError> {
        let is_there = self.byte()?;
        let length = self.byte()?;
        let text = self.bytes(length.into())?;
        match (is_there, length) {
            (0, 0) => Ok(None),
            (1, _) => Ok(Some(text)),
            _ => Err(ImportError::Malformed("a text")),
        }
    }
}
