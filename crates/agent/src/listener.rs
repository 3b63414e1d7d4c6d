//! Listeners into which connections are adopted.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::pin::pin;
use std::time::Duration;

use baton_net::{Error, Result};
use socket2::{Domain, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::client::end_by_reset;

/// This many connections may wait to be accepted, if net.core.somaxconn allows it.
const BACKLOG: i32 = 4096;

/// A listener, and its port on this host.
#[derive(Debug)]
pub(crate) struct Listener {
    listener: TcpListener,
    port: u16,
}

impl Listener {
    /// Makes a listener on 127.0.0.1, at a port of the kernel's choice. A program assigns connections to it, whatever
    /// address and port they are to. `what` follows "listen on 127.0.0.1 for" in the error.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn bind(what: &str) -> Result<Self> {
        std::net::TcpListener::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))
            .and_then(Self::adopt)
            .map_err(Error::system(format!("listen on 127.0.0.1 for {what}")))
    }

    /// Uses a listener that exists already. It must be plain TCP.
    pub fn adopt(listener: std::net::TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// Sets the receive buffer, in bytes, of connections that come from now on. It must hold the data that is not read,
    /// and what the kernel needs around that data.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn hold_at_most(&self, bytes: usize) -> Result<()> {
        let bounded = SockRef::from(&self.listener).set_recv_buffer_size(bytes);
        bounded.map_err(Error::system("bound the buffers of a listener"))
    }

    /// The port that the listener is bound to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Makes a listener at the address that clients connect to. This host need not have that address yet.
    ///
    /// # Errors
    /// For instance if another program listens there.
    pub fn at(address: SocketAddrV4) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), None)?;
        socket.set_freebind_v4(true)?;
        socket.set_reuse_address(true)?;
        socket.bind(&SocketAddr::V4(address).into())?;
        socket.listen(BACKLOG)?;
        Self::adopt(socket.into())
    }

    /// The socket itself.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Accepts connections and has `serve` serve each of them. When this future is dropped, all of them end. A
    /// connection that `serve` drops without having called `end_in_order` is reset.
    pub async fn accept<F>(&self, mut serve: impl FnMut(TcpStream) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut connections = JoinSet::new();
        loop {
            connections.spawn(serve(self.next().await));
            while connections.try_join_next().is_some() {}
        }
    }

    /// Does the same until `stop` is ready. Then nobody listens any more, and this ends with the last connection.
    pub async fn accept_until<F>(
        self,
        stop: impl Future<Output = ()>,
        mut serve: impl FnMut(TcpStream) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut connections = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                client = self.next() => connections.spawn(serve(client)),
                () = &mut stop => break,
            };
            while connections.try_join_next().is_some() {}
        }
        drop((self, serve));
        while connections.join_next().await.is_some() {}
    }

    /// The next connection.
    async fn next(&self) -> TcpStream {
        loop {
            match self.listener.accept().await {
                Ok((client, _)) => {
                    end_by_reset(&client);
                    return client;
                }
                // No file descriptors or memory are left, or the client has gone. Connections that come meanwhile wait.
                Err(error) => {
                    tracing::warn!(port = self.port, %error, "the agent cannot accept a connection");
                    sleep(Duration::from_millis(10)).await;
                }
            }
        }
    }
}
