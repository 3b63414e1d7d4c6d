//! The key that two nodes share, in the form that QUIC needs.

use std::sync::Arc;
use std::time::Duration;

use baton_wire::{Keys, LccpKey};
use quinn::{
    AckFrequencyConfig, ClientConfig, EndpointConfig, ServerConfig, TransportConfig, VarInt,
};
use quinn_proto::RandomConnectionIdGenerator;
use ring::hmac;
use rustls::Error;

use crate::pinned::Pinned;
use crate::quic;

/// The protocol's name and version. Nodes whose versions differ do not connect.
const ALPN: &[u8] = b"baton-streams/2";

/// So many packets may wait to be acknowledged, and no longer than this. An answer that comes sooner acknowledges its
/// question, which saves a packet.
const UNACKNOWLEDGED: VarInt = VarInt::from_u32(4);
const ACKNOWLEDGED_AFTER: Duration = Duration::from_millis(3);

/// How many questions and channels of a node may be under way at once.
const QUESTIONS: u32 = 4096;

/// The configuration of a node's socket. A node that has restarted knows none of its connections, and says so to whoever
/// sends to one (RFC 9000, section 10.3). For that it must have the same key as before: `own`, which no other node has.
pub(crate) fn endpoint(own: &LccpKey) -> EndpointConfig {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &secret(own, "baton streams, resets"));
    let mut config = EndpointConfig::new(Arc::new(key));
    // quinn's own default lets each process know its connections by a key of its own, and pass over all others.
    config.cid_generator(|| Box::new(RandomConnectionIdGenerator::default()));
    config
}

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
    let seed = |key| secret(key, "baton streams");
    let believed: Vec<_> = keys.all().map(seed).collect();
    Pinned::new(seed(&keys.current), &believed)
}

fn secret(key: &LccpKey, label: &str) -> [u8; 32] {
    let bytes = key.words().map(u64::to_le_bytes);
    quic::secret(bytes.as_flattened(), label)
}

fn transport() -> TransportConfig {
    let mut transport = quic::transport();
    let mut acknowledgements = AckFrequencyConfig::default();
    acknowledgements
        .ack_eliciting_threshold(UNACKNOWLEDGED)
        .max_ack_delay(Some(ACKNOWLEDGED_AFTER));
    transport.ack_frequency_config(Some(acknowledgements));
    transport.max_concurrent_uni_streams(VarInt::from_u32(1));
    transport.max_concurrent_bidi_streams(VarInt::from_u32(QUESTIONS));
    transport
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

    use baton_wire::ClusterKey;
    use quinn::{ConnectionError, Endpoint, TokioRuntime};
    use tokio::runtime::Runtime;
    use tokio::task::spawn_blocking;

    fn keys() -> Keys {
        let [one, other] = [1, 2].map(|last| Ipv4Addr::new(192, 0, 2, last));
        Keys::only(ClusterKey::from_bytes([7; 32]).unwrap().pair(one, other))
    }

    fn bound(at: SocketAddr) -> Endpoint {
        let socket = UdpSocket::bind(at).unwrap();
        let (config, server) = (endpoint(&keys().current), server(&keys()).unwrap());
        Endpoint::new(config, Some(server), socket, Arc::new(TokioRuntime)).unwrap()
    }

    #[tokio::test]
    async fn a_restart_is_noticed_without_waiting_for_silence() {
        let own = bound((Ipv4Addr::LOCALHOST, 0).into());
        let process = Runtime::new().unwrap();
        let (other, at) = {
            let _inside = process.enter();
            let other = bound((Ipv4Addr::LOCALHOST, 0).into());
            let at = other.local_addr().unwrap();
            (other, at)
        };
        let accepting = process.spawn(async move {
            let connection = other.accept().await.unwrap().await.unwrap();
            (other, connection)
        });
        let connecting = own.connect_with(client(&keys()).unwrap(), at, "node.baton");
        let connection = connecting.unwrap().await.unwrap();
        let accepted = accepting.await.unwrap();
        // The process dies: it says nothing more, and its port is free.
        let dying = spawn_blocking(move || process.shutdown_timeout(quic::DEAD_AFTER));
        dying.await.unwrap();
        drop(accepted);
        let _restarted = bound(at);
        assert_eq!(connection.closed().await, ConnectionError::Reset);
    }
}
