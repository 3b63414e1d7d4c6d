//! TLS of which an established connection can go on at another machine.
//!
//! ```text
//!  Certificates, TicketKeys --> Acceptor --> Handshake --> Session --export()--> bytes --import()--> Session ...
//!                                            (rustls)      (records)             (sealed by the caller)
//! ```
//!
//! rustls makes the handshake. From its end on, the records are this crate's own work ([`Session`]), because rustls can
//! hand out an established connection's keys but cannot begin with them. A session therefore needs little: the keys of
//! both directions, the numbers of their next records, and a few counts that bound what a client may demand.
//!
//! Nothing here opens a socket or waits. The caller brings the bytes that have come, and sends those that are to go.
//!
//! Secrets are overwritten when they are dropped, except for the round keys inside of ring's ciphers, on which ring
//! offers no hold.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod acceptor;
mod alert;
mod certificate_file;
mod certificates;
mod direction;
mod established;
mod handshake;
mod limits;
mod offload;
mod post_handshake;
mod record;
mod session;
mod suite;
#[cfg(test)]
mod tests;
mod ticket_keys;
mod tickets;
mod transfer;
mod witness;

pub use acceptor::Acceptor;
pub use alert::Alert;
pub use certificate_file::{About, CertificateError, CertificateProblem, PemFile};
pub use certificates::Certificates;
pub use handshake::{Handshake, HandshakeError, Progress};
pub use offload::SendingKey;
pub use record::{LONGEST_PLAIN, RecordError};
pub use session::{Received, Session};
pub use suite::{Cipher, Suite, Version};
pub use ticket_keys::{NodeKeys, TicketKeyRing};
pub use tickets::TicketKeys;
pub use transfer::ImportError;
