//! The two ends of a session over connections. The state machines of [`eop_protocol`] decide what must be done, and
//! this module does it. Nothing here waits: a call that cannot go on returns `Pending`, [`Wait`] says what the call
//! needs, and then the caller makes it again. The sockets differ only in how they wait, with or without a runtime.
//!
//! Everything that is under way is kept here, so a caller may give up waiting at any time: the next call sends what
//! was to be sent, and the inbox has what has arrived.

mod client;
mod inbox;
mod known;
mod linger;
mod server;
mod stream;
mod tcp;
mod ulp;

pub(crate) use client::Client;
pub(crate) use server::{Server, listen};
pub(crate) use tcp::{Tcp, Until, Wait};
