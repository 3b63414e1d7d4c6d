//! QUIC between two ends that know each other's keys, with the settings that all users of QUIC in a cluster share.

use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, IdleTimeout, ServerConfig, TransportConfig, VarInt};
use ring::hmac;
use rustls::Error;

use crate::pinned::Pinned;

/// How long an end may be silent before it counts as gone.
pub const DEAD_AFTER: Duration = Duration::from_secs(5);
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// The configuration of the end that connects, for the protocol with this name.
///
/// # Errors
/// No case is known in which it fails.
pub fn client(
    pinned: &Pinned,
    alpn: &[u8],
    transport: TransportConfig,
) -> Result<ClientConfig, Error> {
    let crypto = QuicClientConfig::try_from(pinned.client(alpn)?).map_err(no_cipher)?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// The configuration of the end that accepts connections.
///
/// # Errors
/// No case is known in which it fails.
pub fn server(
    pinned: &Pinned,
    alpn: &[u8],
    transport: TransportConfig,
) -> Result<ServerConfig, Error> {
    let crypto = QuicServerConfig::try_from(pinned.server(alpn)?).map_err(no_cipher)?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// The transport settings of both ends. An end sends keep-alives, and counts as gone after [`DEAD_AFTER`] without a
/// packet. A peer may open no streams unless the caller allows them.
pub fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    // Five seconds are far below what a VarInt of milliseconds holds.
    let idle = IdleTimeout::from(VarInt::from_u32(DEAD_AFTER.as_millis() as u32));
    transport
        .max_idle_timeout(Some(idle))
        .keep_alive_interval(Some(SIGN_OF_LIFE))
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(0));
    transport
}

/// Derives a secret of 32 bytes from a key, a different one for each use: HMAC-SHA-256 of the use's name.
pub fn secret(key: &[u8], label: &str) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), label.as_bytes());
    let mut secret = [0; 32];
    secret.copy_from_slice(tag.as_ref()); // SHA-256 gives 32 bytes
    secret
}

fn no_cipher(error: impl std::error::Error) -> Error {
    Error::General(error.to_string())
}
