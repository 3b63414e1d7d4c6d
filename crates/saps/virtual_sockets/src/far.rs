//! What the agent needs from the network that brings its connections to the I/O server.

use std::{future::Future, io, net::SocketAddr};

use baton_dataplane::AppOptions;
use baton_saps::{Accepted, Connected, Family, TakenPort};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};

/// The far end of virtual sockets. It is a handle: a clone stands for the same far end.
pub trait Far: Clone + Send + Sync + 'static {
    /// The stream of a connection's bytes.
    type Stream: FarStream;
    /// A port that the I/O server listens on.
    type Listening: FarListening<Stream = Self::Stream>;

    /// Connects from the cluster address; `options` are set on the socket there. If the future is dropped before it is
    /// done, nothing of the connection is left.
    ///
    /// # Errors
    /// What connect(2) at the I/O server reported, as an OS error.
    fn connect(
        &self,
        to: SocketAddr,
        options: AppOptions,
    ) -> impl Future<Output = io::Result<Connected<Self::Stream>>> + Send;

    /// Listens on every cluster address of the IP versions in `family`.
    ///
    /// # Errors
    /// What listen(2) or bind(2) at the I/O server reported, as an OS error.
    fn listen(
        &self,
        port: u16,
        family: Family,
    ) -> impl Future<Output = io::Result<Self::Listening>> + Send;

    /// The ports that the I/O server would refuse to listen on: the current ones, and each change.
    fn taken(&self) -> watch::Receiver<Box<[TakenPort]>>;
}

/// A port that the I/O server listens on for this agent; it is given up when dropped.
pub trait FarListening: Send + 'static {
    /// The stream of a connection's bytes.
    type Stream: FarStream;

    /// Returns the next connection. Cancel safe.
    ///
    /// # Errors
    /// An OS error if no more connections will come.
    fn accept(&mut self) -> impl Future<Output = io::Result<Accepted<Self::Stream>>> + Send;
}

/// The stream of a connection's bytes. Shutting it down half-closes the connection.
pub trait FarStream: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static {
    /// Ends the connection with a RST.
    fn reset(self);

    /// Ends when the connection breaks, even while nobody reads or writes. The default never ends: then only reading
    /// or writing reports a break.
    fn broken(&self) -> impl Future<Output = ()> + Send + 'static {
        std::future::pending()
    }

    /// Returns a function that sets options of the socket at the far end, even while the stream is in use. The
    /// function does nothing after the end of the stream.
    fn setter(&self) -> impl Fn(AppOptions) + Send + Sync + 'static;
}
