//! A TCP connection, as a session uses it.

use std::fmt::Debug;
use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Instant;

pub trait Tcp: AsFd + Debug + Sized {
    /// Whether calls return `WouldBlock` if they must be made again. Otherwise calls wait themselves, and `WouldBlock`
    /// means that the application has set a timeout.
    const RETURNS: bool;

    /// Takes a non-blocking connection that is being made.
    fn connecting(stream: TcpStream) -> io::Result<Self>;
    /// Puts a connection that is made into the mode that the session needs from then on.
    fn connected(&self) -> io::Result<()>;
    /// Turns the connection into one of the standard library, for code that takes it over from the session.
    fn into_std(self) -> io::Result<TcpStream>;
    /// Makes a call on the connection that may have to be made again when it is readable or writable.
    fn call<R>(&self, until: Until, call: impl FnOnce() -> io::Result<R>) -> io::Result<R>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    Readable,
    Writable,
}

/// The event that a caller must wait for, and the time until which it may wait.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
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
