//! Redirectable sockets: TCP connections whose server may send the client's end to another server, before it has read
//! the request or with its answer.
//!
//! ```no_run
//! # fn main() -> Result<(), eop::Error> {
//! // The server
//! let listener = eop::Listener::bind("10.0.0.1:80".parse().unwrap(), eop::ServerOptions::default())?;
//! let mut session = listener.accept()?;
//! if let Some(request) = session.recv()? {
//!     let response = request.to_vec();
//!     session.redirect(Some(&response), "10.0.0.2:80".parse().unwrap())?;
//! }
//!
//! // The client
//! let mut socket = eop::connect("10.0.0.1:80".parse().unwrap(), eop::Options::default())?;
//! let response = loop {
//!     socket.send(b"request")?;
//!     match socket.recv() {
//!         Err(eop::Error::Redo { .. }) => continue,
//!         other => break other?.map(<[u8]>::to_vec),
//!     }
//! };
//! # Ok(())
//! # }
//! ```
//!
//! With [`Resend::Session`] there is no [`Error::Redo`]: the session itself sends requests again. The rules are those
//! of [`eop_protocol`], the bytes those of [`eop_protocol::wire`].
//!
//! Feature `tokio` has the same sockets for that runtime (module `tokio`). A [`Message`] is sent without a copy.
//!
//! **What the other end speaks** ([`Speak`]). An end may be told what the other end speaks, or find out ([`Peer`]). If
//! both find out, all four pairs of plain and EOP ends work on one port. With the BPF program of `baton eop attach`,
//! the SYN and its answer announce EOP in a TCP option. Without it the client asks by HELLO, whose bytes no common
//! protocol begins with. A server that does not understand them is plain: the client connects anew, and remembers it.
//! The cost is that the first connection to a plain server is thrown away: after the server's reply, or after
//! [`Options::patience`] if the server is silent. The server may log a malformed request. A server waits for the
//! client's first bytes before it speaks. If its protocol has the server speak first, it waits for
//! [`ServerOptions::patience`] at most.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod blocking;
mod driver;
mod error;
mod message;
mod options;
#[cfg(feature = "tokio")]
pub mod tokio;

pub use baton_wire::ClusterKey;
pub use blocking::{Listener, Session, Socket, connect};
pub use eop_protocol::wire::EopKey;
pub use eop_protocol::{Allow, Error as SessionError, NotAllowed, Prefix, Resend};
pub use error::Error;
pub use message::Message;
pub use options::{Options, Peer, ServerOptions, Speak};

use message::Outgoing;
