//! `protocol` and `unknown_name`: what clients of a service speak, and what becomes of names that no route has.

use crate::values::words::words;

words! {
    /// What clients of a service speak.
    pub enum ClientProtocol "protocol" {
        /// HTTP/1: routes see each request.
        Http = "http",
        /// TLS, of which only servers have the keys. Routes see what clients say first (ClientHello): the server's
        /// name, and the protocols inside TLS. A connection stays with its data server.
        Tls = "tls",
    }
}

words! {
    /// What becomes of a TLS connection that no route takes.
    pub enum UnknownName "unknown_name" {
        /// The service's own data servers have it.
        Serve = "serve",
        /// It is refused with the alert unrecognized_name.
        Refuse = "refuse",
    }
}
