//! Both ends of a session over a connection. What is to be done the machines of [`eop_protocol`] say; here it
//! is done, and nothing waits: what cannot go on is `Pending`, [`Wait`] says until when, and then it is called
//! again. Who waits, with or without a runtime, is the one difference between the sockets.
//!
//! All that is under way is kept here, so a caller may give up waiting at any time: what was to be sent is sent by
//! the next call, what has come is in the inbox.

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
