//! Bytes on their way from one end to another. A relay of two pipes moves whatever can be moved, so that an end
//! which does not read stops nobody but who writes to it.

use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};

/// The most that one read gives, and so the longest message.
pub(crate) const PIECE: usize = 64 << 10;

/// What was read and is not written.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    bytes: Vec<u8>,
    begin: usize,
}

impl Pipe {
    pub fn is_empty(&self) -> bool {
        self.begin == self.bytes.len()
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.begin = 0;
    }

    pub fn put(&mut self, bytes: &[u8]) {
        if self.is_empty() {
            self.clear();
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes some of it. Cancel safe.
    pub async fn drain(&mut self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        match to.write(&self.bytes[self.begin..]).await? {
            0 => Err(io::ErrorKind::WriteZero.into()),
            count => {
                self.begin += count;
                Ok(())
            }
        }
    }

    /// Writes all of it.
    pub async fn flush(&mut self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        while !self.is_empty() {
            self.drain(to).await?;
        }
        Ok(())
    }
}
