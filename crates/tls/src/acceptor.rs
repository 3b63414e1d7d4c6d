//! The settings of new handshakes.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::server::{NoServerSessionStorage, UnbufferedServerConnection};
use rustls::{Error, ServerConfig};

use crate::certificates::Certificates;
use crate::tickets::{TicketKeys, Tickets};
use crate::witness::Witness;

/// The settings of new handshakes. A clone shares them.
#[derive(Clone, Debug)]
pub struct Acceptor {
    certificates: Certificates,
    config: Arc<ServerConfig>,
}

impl Acceptor {
    /// Accepts TLS 1.2 and 1.3 with these certificates and ticket keys, and with the application protocols of `alpn`,
    /// the favourite first. A client that offers protocols, but none of these, is refused (RFC 7301, section 3.2). With
    /// none in `alpn`, no protocol is agreed upon. `service` tells the service from all others with the same ticket keys,
    /// and is the same at each node: no other service takes its tickets.
    ///
    /// # Errors
    /// No case is known in which it fails.
    pub fn new(
        certificates: Certificates,
        alpn: &[&[u8]],
        tickets: TicketKeys,
        service: &[u8],
    ) -> Result<Self, Error> {
        let resolver = Arc::new(Witness::new(certificates.clone()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
        config.ticketer = Arc::new(Tickets::new(tickets, service));
        // Only tickets can be resumed at whichever node the client comes to next.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        // Whoever records early data can send it again, to each node once (RFC 8446, section 8).
        config.max_early_data_size = 0;
        config.enable_secret_extraction = true;
        Ok(Self {
            certificates,
            config: Arc::new(config),
        })
    }

    /// Begins a handshake, and returns the witness of it as well.
    pub(crate) fn begin(&self) -> Result<(UnbufferedServerConnection, Arc<Witness>), Error> {
        let witness = Arc::new(Witness::new(self.certificates.clone()));
        let mut config = (*self.config).clone();
        config.cert_resolver = Arc::clone(&witness) as _;
        config.key_log = Arc::clone(&witness) as _;
        Ok((UnbufferedServerConnection::new(Arc::new(config))?, witness))
    }
}
