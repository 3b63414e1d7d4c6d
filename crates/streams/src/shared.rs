//! The key that two nodes share, in the form that QUIC needs.

use baton_wire::{Keys, LccpKey};
use quinn::{ClientConfig, ServerConfig, TransportConfig, VarInt};
use rustls::Error;

use crate::pinned::Pinned;
use crate::quic;

/// The protocol's name and version. Nodes whose versions differ do not connect.
const ALPN: &[u8] = b"baton-streams/1";

/// How many questions of a node may be under way at once.
const QUESTIONS: u32 = 256;

/// The configuration of the end that connects.
pub(crate) fn client(keys: &Keys) -> Result<ClientConfig, Error> {
    quic::client(&pinned(keys)?, ALPN, transport())
}

/// The configuration of the end that accepts connections.
pub(crate) fn server(keys: &Keys) -> Result<ServerConfig, Error> {
    quic::server(&pinned(keys)?, ALPN, transport())
}

/// The key pair that both nodes derive from the key that they share, and that no other node can derive.
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
    transport.max_concurrent_bidi_streams(VarInt::from_u32(QUESTIONS));
    transport
}
