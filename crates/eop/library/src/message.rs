//! A message that can be sent without a copy.

use std::ops::Deref;

use eop_protocol::wire::{HEADER, Head};

use crate::Error;

/// A message in a buffer that has room for the header in front, so that both leave in one piece and without a copy.
/// That copy is what makes sending a slice of some kilobytes or more cost more.
///
/// ```
/// let mut message = eop::Message::from(&b"HTTP/1.1 "[..]);
/// message.extend_from_slice(b"200 OK");
/// assert_eq!(&message[..], b"HTTP/1.1 200 OK");
/// message.clear();
/// assert!(message.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The first [`HEADER`] bytes are room for the header, which is written there only when the message is sent.
    bytes: Vec<u8>,
}

impl Message {
    /// Makes an empty message with room for this many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut message = Self {
            bytes: Vec::with_capacity(HEADER + bytes),
        };
        message.clear();
        message
    }

    /// Makes the message empty; its room remains.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.resize(HEADER, 0);
    }

    /// Appends bytes.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn outgoing(&mut self) -> Outgoing<'_> {
        // A longer message is not sent, see `Outgoing::slen`.
        let slen = u32::try_from(self.len()).unwrap_or(u32::MAX);
        self.bytes[..HEADER].copy_from_slice(&Head::normal(slen));
        Outgoing {
            bytes: &self.bytes,
            body: HEADER,
        }
    }
}

impl From<&[u8]> for Message {
    fn from(bytes: &[u8]) -> Self {
        let mut message = Self::with_capacity(bytes.len());
        message.extend_from_slice(bytes);
        message
    }
}

impl Deref for Message {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[HEADER..]
    }
}

/// A message to be sent, with its header in front or without.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing<'a> {
    bytes: &'a [u8],
    /// Where the message begins; its header is before that.
    body: usize,
}

impl<'a> Outgoing<'a> {
    pub const fn of(message: &'a [u8]) -> Self {
        Self {
            bytes: message,
            body: 0,
        }
    }

    pub fn body(&self) -> &'a [u8] {
        &self.bytes[self.body..]
    }

    pub fn slen(&self) -> Result<u32, Error> {
        let bytes = self.body().len();
        u32::try_from(bytes).map_err(|_| Error::TooLong { bytes })
    }

    /// The pieces in which the message and its header are sent. `header` is used if the message has none in front.
    pub const fn behind<'h>(&self, header: &'h [u8]) -> (&'h [u8], &'a [u8]) {
        if self.body > 0 {
            (&[], self.bytes)
        } else {
            (header, self.bytes)
        }
    }
}
