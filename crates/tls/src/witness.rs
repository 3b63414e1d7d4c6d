//! What rustls tells only during a handshake: the secrets of TLS 1.3, and the name that the client asked for.

use std::fmt;
use std::sync::{Arc, OnceLock};

use rustls::KeyLog;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use zeroize::Zeroizing;

use crate::certificates::Certificates;

type Secret = OnceLock<Zeroizing<Vec<u8>>>;

/// What one handshake has told. rustls gives out the keys that follow from the secrets, but not the secrets. Without
/// these, a machine that the session moves to could not follow when the client changes its key.
pub(crate) struct Witness {
    certificates: Certificates,
    server_name: OnceLock<String>,
    /// The secret of what the client sends during the handshake.
    pub(crate) client_handshake: Secret,
    /// The first secret of what the client sends after the handshake.
    pub(crate) client: Secret,
    /// The first secret of what the client is sent after the handshake.
    pub(crate) server: Secret,
}

impl Witness {
    pub(crate) fn new(certificates: Certificates) -> Self {
        Self {
            certificates,
            server_name: OnceLock::new(),
            client_handshake: OnceLock::new(),
            client: OnceLock::new(),
            server: OnceLock::new(),
        }
    }

    /// The name that the client asked for, in lower case.
    pub(crate) fn server_name(&self) -> Option<&str> {
        self.server_name.get().map(String::as_str)
    }

    fn of(&self, label: &str) -> Option<&Secret> {
        match label {
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => Some(&self.client_handshake),
            "CLIENT_TRAFFIC_SECRET_0" => Some(&self.client),
            "SERVER_TRAFFIC_SECRET_0" => Some(&self.server),
            _ => None,
        }
    }
}

impl KeyLog for Witness {
    fn log(&self, label: &str, _: &[u8], secret: &[u8]) {
        if let Some(place) = self.of(label) {
            // A handshake has each secret once. If it did not, the first one would stay.
            let _ = place.set(Zeroizing::new(secret.to_vec()));
        }
    }

    fn will_log(&self, label: &str) -> bool {
        self.of(label).is_some()
    }
}

impl ResolvesServerCert for Witness {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(str::to_ascii_lowercase);
        let chosen = self
            .certificates
            .choose(name.as_deref(), hello.signature_schemes());
        if let Some(name) = name {
            // A second ClientHello, which a retry makes, must have the same name. rustls sees to that.
            let _ = self.server_name.set(name);
        }
        Some(chosen)
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witness")
            .field("server_name", &self.server_name())
            .finish_non_exhaustive()
    }
}
