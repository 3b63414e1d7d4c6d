//! What two nodes share, as QUIC wants it.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use baton_wire::{KeyRing, Keys, LccpKey};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, IdleTimeout, ServerConfig, TransportConfig, VarInt};
use ring::hmac;

use crate::pinned::Pinned;

/// Another number, and nodes of two versions do not speak to each other.
const ALPN: &[u8] = b"baton-streams/1";
/// How long a silent node is believed in.
const DEAD_AFTER: Duration = Duration::from_secs(5);
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// What is shared with the node at this address; `None`: it is no node.
pub(crate) fn keys_with(ring: &KeyRing, peer: Ipv4Addr) -> Option<Keys> {
    let mut peers = ring.peers();
    peers
        .find(|(address, _)| *address == peer)
        .map(|(_, keys)| keys)
}

/// For the end that connects.
pub(crate) fn client(keys: &Keys) -> Result<ClientConfig, rustls::Error> {
    let crypto = QuicClientConfig::try_from(pinned(keys)?.client(ALPN)?).map_err(no_cipher)?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(transport()));
    Ok(config)
}

/// For the end that is connected to.
pub(crate) fn server(keys: &Keys) -> Result<ServerConfig, rustls::Error> {
    let crypto = QuicServerConfig::try_from(pinned(keys)?.server(ALPN)?).map_err(no_cipher)?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(transport()));
    Ok(config)
}

fn no_cipher(error: impl std::error::Error) -> rustls::Error {
    rustls::Error::General(error.to_string())
}

/// The key pair that both nodes make of the key that they share, and no other node can.
fn pinned(keys: &Keys) -> Result<Pinned, rustls::Error> {
    let believed: Vec<_> = keys.all().map(seed).collect();
    Pinned::new(seed(&keys.current), &believed)
}

/// A secret of its own for this use: HMAC-SHA-256 of the use's name under the key.
fn seed(key: &LccpKey) -> [u8; 32] {
    let mut bytes = [0; 16];
    for (half, word) in bytes.chunks_mut(8).zip(key.words()) {
        half.copy_from_slice(&word.to_le_bytes());
    }
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &bytes), b"baton streams");
    let mut seed = [0; 32];
    seed.copy_from_slice(tag.as_ref()); // SHA-256 has 32 bytes
    seed
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    // Five seconds are far below what a VarInt of milliseconds holds.
    let idle = IdleTimeout::from(VarInt::from_u32(DEAD_AFTER.as_millis() as u32));
    transport
        .max_idle_timeout(Some(idle))
        .keep_alive_interval(Some(SIGN_OF_LIFE))
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(1));
    transport
}
