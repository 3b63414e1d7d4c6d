//! Links over one TCP connection each.

use std::io;
use std::net::SocketAddr;

use baton_streams::quic::DEAD_AFTER;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream};

use super::forwarding_network::{
    Acceptor, BoxFuture, ForwardingNetwork, Handshake, Lane, Link, in_time,
};
use super::{NetworkKeys, proof};

#[derive(Debug)]
pub(super) struct Tcp {
    keys: NetworkKeys,
}

impl Tcp {
    pub(super) fn new(keys: NetworkKeys) -> Self {
        Self { keys }
    }
}

impl ForwardingNetwork for Tcp {
    fn connect(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<Link>> {
        let making = async move {
            let mut stream = TcpStream::connect(to).await?;
            prepare(&stream)?;
            proof::ask(&mut stream, &self.keys).await?;
            Ok(link(to, stream))
        };
        in_time(making)
    }

    fn listen(&self, at: SocketAddr) -> io::Result<Box<dyn Acceptor>> {
        let domain = Domain::for_address(at);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&at.into())?;
        socket.listen(128)?;
        Ok(Box::new(Listener {
            listener: TcpListener::from_std(socket.into())?,
            keys: self.keys.clone(),
        }))
    }
}

struct Listener {
    listener: TcpListener,
    keys: NetworkKeys,
}

impl Acceptor for Listener {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Handshake>> {
        Box::pin(async {
            let (mut stream, peer) = self.listener.accept().await?;
            let keys = self.keys.clone();
            let making = async move {
                prepare(&stream)?;
                proof::answer(&mut stream, &keys).await?;
                Ok(link(peer, stream))
            };
            Ok(in_time(making))
        })
    }

    fn local(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Sets keepalives and a timeout, so that a node that is gone is noticed, whether there is something to send to it or
/// not.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let probes = 3;
    let keepalive = TcpKeepalive::new()
        .with_time(DEAD_AFTER / (probes + 2))
        .with_interval(DEAD_AFTER / (probes + 2))
        .with_retries(probes);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(DEAD_AFTER))
}

fn link(peer: SocketAddr, stream: TcpStream) -> Link {
    let (reader, writer) = stream.into_split();
    let lane = Lane {
        reader: Box::new(reader),
        writer: Box::new(writer),
    };
    Link {
        peer,
        lanes: vec![lane],
        keep: None,
    }
}
