//! Links over QUIC, encrypted. Both ends prove by TLS 1.3 that they hold the key pair that is derived from the cluster
//! key (Ed25519, as a raw public key, RFC 7250: nobody certifies it, and it does not expire).
//!
//! A link has eight streams, each of which is a lane. If a packet is lost, QUIC goes on with the other streams, so
//! seven eighths of the connections do not wait for it. One stream for each connection would be better still, but a
//! stream must be opened and accepted. That would cost for each connection what a lane costs once for each node.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use baton_streams::{Pinned, quic};
use quinn::{
    ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig, TransportConfig,
    VarInt,
};
use tokio::io::AsyncReadExt;

use super::forwarding_network::{
    Acceptor, BoxFuture, ForwardingNetwork, Handshake, Lane, Link, in_time,
};
use super::keys::NetworkKeys;

const LANES: u8 = 8;
const LABEL: &str = "link over QUIC";
const ALPN: &[u8] = b"baton-forwarding/1";
/// The name is not checked: the other end is known by its key.
const SERVER_NAME: &str = "io-server.baton";
const STREAM_WINDOW: u32 = 4 << 20;
const LINK_WINDOW: u32 = 16 << 20;

#[derive(Debug)]
pub(super) struct Quic {
    client: ClientConfig,
    server: ServerConfig,
}

impl Quic {
    pub(super) fn new(keys: &NetworkKeys) -> io::Result<Self> {
        let believed: Vec<_> = keys.believed(LABEL).collect();
        let pinned = Pinned::new(keys.current(LABEL), &believed).map_err(io::Error::other)?;
        Ok(Self {
            client: quic::client(&pinned, ALPN, transport()).map_err(io::Error::other)?,
            server: quic::server(&pinned, ALPN, transport()).map_err(io::Error::other)?,
        })
    }
}

fn transport() -> TransportConfig {
    let mut transport = quic::transport();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(LANES.into()))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(LINK_WINDOW))
        .send_window(LINK_WINDOW.into());
    transport
}

impl ForwardingNetwork for Quic {
    fn connect(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<Link>> {
        let making = async move {
            let any: SocketAddr = match to {
                SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
                SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
            };
            let endpoint = Endpoint::client(any)?;
            let connecting = endpoint.connect_with(self.client.clone(), to, SERVER_NAME);
            let connection = connecting.map_err(io::Error::other)?.await?;
            let mut lanes = Vec::new();
            for number in 0..LANES {
                let (mut writer, reader) = connection.open_bi().await?;
                // The other end learns of a stream only by its first byte.
                writer.write_all(&[number]).await?;
                lanes.push(lane(reader, writer));
            }
            Ok(link(to, lanes, (endpoint, connection)))
        };
        in_time(making)
    }

    fn listen(&self, at: SocketAddr) -> io::Result<Box<dyn Acceptor>> {
        let endpoint = Endpoint::server(self.server.clone(), at)?;
        Ok(Box::new(Listener { endpoint }))
    }
}

struct Listener {
    endpoint: Endpoint,
}

impl Acceptor for Listener {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Handshake>> {
        Box::pin(async {
            let incoming = self.endpoint.accept().await;
            let incoming = incoming.ok_or_else(|| io::Error::other("the endpoint is closed"))?;
            let peer = incoming.remote_address();
            let making = async move {
                let connection = incoming.accept()?.await?;
                let lanes = accept_lanes(&connection).await?;
                Ok(link(peer, lanes, connection))
            };
            Ok(in_time(making))
        })
    }

    fn local(&self) -> io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }
}

/// Accepts the streams, and returns them in the order of their numbers.
async fn accept_lanes(connection: &Connection) -> io::Result<Vec<Lane>> {
    let mut lanes: Vec<Option<Lane>> = (0..LANES).map(|_| None).collect();
    for _ in 0..LANES {
        let (writer, mut reader) = connection.accept_bi().await?;
        let number = reader.read_u8().await?;
        match lanes.get_mut(usize::from(number)) {
            Some(place @ None) => *place = Some(lane(reader, writer)),
            _ => return Err(io::Error::other("a lane came twice")),
        }
    }
    // Eight different numbers below eight have arrived, so no lane is missing.
    Ok(lanes.into_iter().flatten().collect())
}

fn lane(reader: RecvStream, writer: SendStream) -> Lane {
    Lane {
        reader: Box::new(reader),
        writer: Box::new(writer),
    }
}

fn link(peer: SocketAddr, lanes: Vec<Lane>, keep: impl Send + Sync + 'static) -> Link {
    Link {
        peer,
        lanes,
        keep: Some(Box::new(keep)),
    }
}
