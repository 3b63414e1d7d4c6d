//! Bytes on their way from one end to another. A relay with two pipes moves whatever can be moved, so an end that does
//! not read holds up only the end that writes to it.

use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};

/// The most bytes that one read returns, and so the length of the longest message.
pub(crate) const PIECE: usize = 64 << 10;

/// Bytes that were read and are not written yet.
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

    /// Writes some of the bytes. Cancel safe.
    pub async fn drain(&mut self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        match to.write(&self.bytes[self.begin..]).await? {
            0 => Err(io::ErrorKind::WriteZero.into()),
            count => {
                self.begin += count;
                Ok(())
            }
        }
    }

    /// Writes all of the bytes.
    pub async fn flush(&mut self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        while !self.is_empty() {
            self.drain(to).await?;
        }
        Ok(())
    }
}
