//! What clients speak, and what they ask for.

use baton_core::rules::{ClientHello, Request};

/// What clients of a service speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.
    Http,
    /// TLS. Nobody here has its keys: a connection goes where its ClientHello says, and stays there.
    Tls,
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// This HTTP request. The connection goes on with others.
    Http(Box<Request>),
    /// A TLS connection that begins so. Nobody here reads what follows.
    Tls(ClientHello),
}
