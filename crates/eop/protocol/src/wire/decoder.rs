//! Finds messages in a byte stream that may be cut anywhere.

use super::{Error, HEADER, Head, MAX_HEAD, Parsed, parse};

/// Decodes one direction of a connection. It keeps the bytes of a head that has not arrived whole, and never those of
/// a message.
#[derive(Clone, Debug)]
pub struct Decoder {
    limit: u32,
    head: [u8; MAX_HEAD],
    filled: usize,
    need: usize,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Head,
    Message { rest: u32 },
    Failed(Error),
}

/// The next part of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A message of this many bytes begins.
    Head(Head, u32),
    /// Further bytes of the message, at least one.
    Data(&'a [u8]),
    /// The message has arrived whole. This follows a message of no bytes as well.
    End,
}

impl Decoder {
    /// Makes a decoder for the beginning of a connection whose messages have at most `limit` bytes.
    pub const fn new(limit: u32) -> Self {
        Self {
            limit,
            head: [0; MAX_HEAD],
            filled: 0,
            need: HEADER,
            state: State::Head,
        }
    }

    /// Takes the next piece off the front of `bytes`. Returns `None` if more bytes are needed, and then `bytes` is
    /// empty.
    ///
    /// # Errors
    /// [`Error`] if the stream is not EOP. All further calls return the same error.
    pub fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<Piece<'a>>, Error> {
        match self.state {
            State::Failed(error) => Err(error),
            State::Message { rest: 0 } => {
                self.state = State::Head;
                Ok(Some(Piece::End))
            }
            State::Message { rest } => {
                let length = bytes.len().min(rest as usize);
                if length == 0 {
                    return Ok(None);
                }
                // `length` is at most `rest`, a u32.
                self.state = State::Message {
                    rest: rest - length as u32,
                };
                Ok(Some(Piece::Data(take(bytes, length))))
            }
            State::Head => self.next_head(bytes).inspect_err(|&error| {
                self.state = State::Failed(error);
            }),
        }
    }

    /// Checks that the stream may end at this point, which is only between two messages.
    ///
    /// # Errors
    /// [`Error::CutOff`], or the error that [`Self::next`] has returned.
    pub const fn finish(&self) -> Result<(), Error> {
        match self.state {
            State::Failed(error) => Err(error),
            State::Head if self.filled == 0 => Ok(()),
            State::Head | State::Message { .. } => Err(Error::CutOff),
        }
    }

    fn next_head<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<Piece<'a>>, Error> {
        loop {
            let part = take(bytes, bytes.len().min(self.need - self.filled));
            // `need` is never above MAX_HEAD: parse refuses longer items.
            self.head[self.filled..][..part.len()].copy_from_slice(part);
            self.filled += part.len();
            match parse(&self.head[..self.filled], self.limit)? {
                Parsed::Whole { head, slen, .. } => {
                    (self.filled, self.need) = (0, HEADER);
                    self.state = State::Message { rest: slen };
                    return Ok(Some(Piece::Head(head, slen)));
                }
                Parsed::Need(need) => self.need = need,
            }
            if bytes.is_empty() {
                return Ok(None);
            }
        }
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (part, rest) = bytes.split_at(length);
    *bytes = rest;
    part
}
