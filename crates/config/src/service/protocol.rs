//! `protocol` and `unknown_name`: what clients of a service speak, and what becomes of names that no route has.

use crate::values::words::words;

/// What clients of a service speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientProtocol {
    /// HTTP/1: routes see each request.
    Http,
    /// TLS, of which only servers have the keys. Routes see what clients say first (ClientHello): the server's name, and
    /// the protocols inside TLS. A connection stays with its data server.
    Tls,
}

words!(ClientProtocol, "protocol", Http = "http", Tls = "tls");

/// What becomes of a TLS connection that no route takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownName {
    /// The service's own data servers have it.
    Serve,
    /// It is refused with the alert unrecognized_name.
    Refuse,
}

words!(
    UnknownName,
    "unknown_name",
    Serve = "serve",
    Refuse = "refuse"
);
