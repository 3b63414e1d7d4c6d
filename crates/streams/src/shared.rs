//! What two nodes share, as QUIC wants it.

use baton_wire::{Keys, LccpKey};
use quinn::{ClientConfig, ServerConfig, TransportConfig, VarInt};
use rustls::Error;

use crate::pinned::Pinned;
use crate::quic;

/// Another number, and nodes of two versions do not speak to each other.
const ALPN: &[u8] = b"baton-streams/1";

/// For the end that connects.
pub(crate) fn client(keys: &Keys) -> Result<ClientConfig, Error> {
    quic::client(&pinned(keys)?, ALPN, transport())
}

/// For the end that is connected to.
pub(crate) fn server(keys: &Keys) -> Result<ServerConfig, Error> {
    quic::server(&pinned(keys)?, ALPN, transport())
}

/// The key pair that both nodes make of the key that they share, and no other node can.
fn pinned(keys: &Keys) -> Result<Pinned, Error> {
    let believed: Vec<_> = keys.all().map(seed).collect();
    Pinned::new(seed(&keys.current), &believed)
}

fn seed(key: &LccpKey) -> [u8; 32] {
    let bytes = key.words().map(u64::to_le_bytes);
    quic::secret(bytes.as_flattened(), "baton streams")
}

fn transport() -> TransportConfig {
    let mut transport = quic::transport();
    transport.max_concurrent_uni_streams(VarInt::from_u32(1));
    transport
}
