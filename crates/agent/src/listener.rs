//! Where adopted connections come in.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use baton_net::{Error, Result};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::client::end_by_reset;

/// A listener, and where it is on this host.
#[derive(Debug)]
pub(crate) struct Listener {
    listener: TcpListener,
    port: u16,
}

impl Listener {
    /// On 127.0.0.1, at a port of the kernel's choice: into this one a program assigns connections, whatever address and
    /// port they are to. `what` follows "listen on 127.0.0.1 for" in the error.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn bind(what: &str) -> Result<Self> {
        std::net::TcpListener::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))
            .and_then(Self::adopt)
            .map_err(Error::system(format!("listen on 127.0.0.1 for {what}")))
    }

    /// One that exists. It must be plain TCP.
    pub fn adopt(listener: std::net::TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// Connections that come from now on have this room for what is not read, bytes; some of it is for what is around those.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn hold_at_most(&self, bytes: usize) -> Result<()> {
        let bounded = SockRef::from(&self.listener).set_recv_buffer_size(bytes);
        bounded.map_err(Error::system("bound the buffers of a listener"))
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Has each connection served until this is dropped, and ends them all then. A connection that `serve` drops without
    /// saying that it ends in order is reset.
    pub async fn accept<F>(&self, mut serve: impl FnMut(TcpStream) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut connections = JoinSet::new();
        loop {
            match self.listener.accept().await {
                Ok((client, _)) => {
                    end_by_reset(&client);
                    connections.spawn(serve(client));
                }
                // No file descriptors or memory are left, or the client has gone: the others wait.
                Err(error) => {
                    tracing::warn!(port = self.port, %error, "the agent cannot accept a connection");
                    sleep(Duration::from_millis(10)).await;
                }
            }
            while connections.try_join_next().is_some() {}
        }
    }
}
