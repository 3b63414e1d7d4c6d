//! A connection, as a session uses it.

use std::fmt::Debug;
use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Instant;

pub(crate) trait Tcp: AsFd + Debug + Sized {
    /// Whether calls return `WouldBlock` when they are to be made again; else they wait themselves, and the
    /// application has set a timeout.
    const RETURNS: bool;

    /// Of a connection that is being made, whose calls return.
    fn connecting(stream: TcpStream) -> io::Result<Self>;
    /// It is made: from now on it is as it always is.
    fn connected(&self) -> io::Result<()>;
    /// For whoever is done with it here.
    fn into_std(self) -> io::Result<TcpStream>;
    /// Makes a call on it that may have to be made again when it is readable or writable.
    fn call<R>(&self, until: Until, call: impl FnOnce() -> io::Result<R>) -> io::Result<R>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    Readable,
    Writable,
}

/// Until when to wait, and at most until then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub until: Until,
    pub deadline: Option<Instant>,
}

impl Tcp for TcpStream {
    const RETURNS: bool = false;

    fn connecting(stream: TcpStream) -> io::Result<Self> {
        Ok(stream)
    }

    fn connected(&self) -> io::Result<()> {
        self.set_nonblocking(false)
    }

    fn into_std(self) -> io::Result<TcpStream> {
        Ok(self)
    }

    fn call<R>(&self, _: Until, call: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        call()
    }
}
