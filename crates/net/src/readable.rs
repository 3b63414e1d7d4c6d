//! Waits until a descriptor of the kernel becomes readable.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::{Error, Result};

/// A descriptor that becomes readable repeatedly.
#[derive(Debug)]
pub struct Readable(AsyncFd<OwnedFd>);

impl Readable {
    /// Takes over the descriptor. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::System`] if the descriptor is of a kind that cannot be waited for.
    pub fn new(descriptor: OwnedFd) -> Result<Self> {
        let register = || -> io::Result<AsyncFd<OwnedFd>> {
            // SAFETY: the descriptor stays open until the AsyncFd drops it, which takes it over and
            // never gives out a mutable reference to it.
            Ok(unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?)
        };
        let doing = "wait for a descriptor";
        Ok(Self(register().map_err(Error::system(doing))?))
    }

    /// Returns when something new has come since the last time; the caller should then read until nothing is left. Safe
    /// to cancel.
    ///
    /// # Errors
    /// [`Error::System`] when the runtime ends.
    pub async fn wait(&self) -> Result<()> {
        let ready = self.0.readable().await;
        ready
            .map_err(Error::system("wait for a descriptor"))?
            .clear_ready();
        Ok(())
    }
}
