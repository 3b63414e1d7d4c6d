//! The bytes that have arrived and were not read yet.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Messages shorter than this are copied together. One byte must not keep alive the block that it was read into, nor
/// cost as much to remember as a hundred.
const SMALL: usize = 4096;

/// A queue of bytes that keeps long messages in the memory they came in.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    chunks: VecDeque<Bytes>,
    /// Short messages, which come behind the chunks.
    tail: BytesMut,
}

impl Inbox {
    pub(super) fn push(&mut self, message: Bytes) {
        if message.len() < SMALL {
            self.tail.extend_from_slice(&message);
        } else {
            self.end_tail();
            self.chunks.push_back(message);
        }
        if self.tail.len() >= SMALL {
            self.end_tail();
        }
    }

    /// The next bytes, at most `max`. `None`: there are none.
    pub(super) fn pop(&mut self, max: usize) -> Option<Bytes> {
        if self.chunks.is_empty() {
            self.end_tail();
        }
        let chunk = self.chunks.front_mut()?;
        if chunk.len() > max {
            return Some(chunk.split_to(max));
        }
        self.chunks.pop_front()
    }

    fn end_tail(&mut self) {
        if !self.tail.is_empty() {
            self.chunks.push_back(self.tail.split().freeze());
        }
    }
}
