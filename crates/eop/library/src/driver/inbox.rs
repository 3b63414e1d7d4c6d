//! The bytes that have arrived. Messages in them are handed out where they lie.

use std::ops::Range;

use eop_protocol::wire::{Error, HEADER, Head, MAX_HEAD, Parsed, parse};

/// The first size of the buffer, into which most messages fit.
const FIRST: usize = MAX_HEAD + (4 << 10);

/// For a message up to this length, room is made as soon as its header says how long it is. Further room is made as
/// bytes arrive, because a peer can easily send a header that promises many bytes.
const AT_ONCE: usize = 256 << 10;

#[derive(Debug)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
    limit: u32,
    /// The length of the message that has begun to arrive, with its head, in bytes.
    awaited: usize,
}

impl Inbox {
    pub fn new(limit: u32) -> Self {
        Self {
            bytes: Vec::new(),
            begin: 0,
            end: 0,
            limit,
            awaited: 0,
        }
    }

    /// Returns the next message as [`Self::message`] does, but only if it has the head [`Head::Normal`] and is whole.
    #[inline]
    pub fn normal(&mut self) -> Option<Range<usize>> {
        let slen = Head::normal_slen(&self.bytes[self.begin..self.end])?;
        let begin = self.begin + HEADER;
        let end = begin.saturating_add(slen as usize);
        if slen > self.limit || end > self.end {
            return None;
        }
        (self.begin, self.awaited) = (end, 0);
        Some(begin..end)
    }

    /// Returns the next message once it is whole: its head, and the place of its bytes, which is valid until another
    /// call.
    pub fn message(&mut self) -> Result<Option<(Head, Range<usize>)>, Error> {
        if self.begin == self.end {
            return Ok(None);
        }
        let Parsed::Whole { head, length, slen } =
            parse(&self.bytes[self.begin..self.end], self.limit)?
        else {
            return Ok(None);
        };
        let begin = self.begin + length;
        let end = begin.saturating_add(slen as usize);
        if end > self.end {
            self.awaited = end - self.begin;
            return Ok(None);
        }
        (self.begin, self.awaited) = (end, 0);
        Ok(Some((head, begin..end)))
    }

    /// Returns the place of all bytes that are there, for a peer that does not send messages.
    pub fn all(&mut self) -> Range<usize> {
        let all = self.begin..self.end;
        self.begin = self.end;
        all
    }

    #[inline]
    pub fn waiting(&self) -> &[u8] {
        &self.bytes[self.begin..self.end]
    }

    #[inline]
    pub fn at(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// Skips all bytes that are there, but leaves them where they are.
    pub fn forget(&mut self) {
        self.begin = self.end;
    }

    /// Returns room for more bytes. [`Self::filled`] must be told how many were put there.
    #[inline]
    pub fn space(&mut self) -> &mut [u8] {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        }
        let awaited = self.awaited.min(AT_ONCE);
        if self.end == self.bytes.len() || self.bytes.len() < awaited {
            self.make_space(awaited);
        }
        &mut self.bytes[self.end..]
    }

    #[cold]
    fn make_space(&mut self, awaited: usize) {
        if self.bytes.is_empty() {
            self.bytes = vec![0; FIRST];
        } else if self.begin > 0 && self.bytes.len() >= awaited {
            self.bytes.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
        } else {
            let length = (self.bytes.len() * 2).max(self.begin + awaited);
            self.bytes.resize(length, 0);
        }
    }

    #[inline]
    pub fn filled(&mut self, count: usize) {
        self.end += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_any_length_come_in_pieces_of_any_length() {
        for step in [1, 7, 1000, 100_000] {
            let mut inbox = Inbox::new(1 << 20);
            let (mut stream, mut expected) = (Vec::new(), Vec::new());
            for length in [0, 1, 5000, 70_000, 3] {
                let message = vec![length as u8; length];
                stream.extend(Head::normal(length as u32));
                stream.extend(&message);
                expected.push(message);
            }
            let (mut rest, mut found) = (&stream[..], Vec::new());
            while !rest.is_empty() {
                let space = inbox.space();
                let count = space.len().min(rest.len()).min(step);
                space[..count].copy_from_slice(&rest[..count]);
                inbox.filled(count);
                rest = &rest[count..];
                while let Some((_, range)) = inbox.message().unwrap() {
                    found.push(inbox.at(range).to_vec());
                }
            }
            assert_eq!(found, expected, "steps of {step}");
        }
    }
}
