//! QUIC between two ends that know each other's keys, as everything in a cluster that speaks it wants it.

use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, IdleTimeout, ServerConfig, TransportConfig, VarInt};
use ring::hmac;
use rustls::Error;

use crate::pinned::Pinned;

/// How long a silent end is believed in.
pub const DEAD_AFTER: Duration = Duration::from_secs(5);
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// For the end that connects, under this protocol's name.
///
/// # Errors
/// None is known.
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

/// For the end that is connected to.
///
/// # Errors
/// None is known.
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

/// Each end gives signs of life, and is gone after [`DEAD_AFTER`] without. It opens no streams yet.
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

/// A secret of its own for each use of a key, of 32 bytes: HMAC-SHA-256 of the use's name.
pub fn secret(key: &[u8], label: &str) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), label.as_bytes());
    let mut secret = [0; 32];
    secret.copy_from_slice(tag.as_ref()); // SHA-256 has 32 bytes
    secret
}

fn no_cipher(error: impl std::error::Error) -> Error {
    Error::General(error.to_string())
}
