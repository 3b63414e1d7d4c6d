//! What the agent wants of whatever brings its connections to the I/O server.

use std::{future::Future, io, net::SocketAddr};

use baton_dataplane::{AppOptions, AppTaken};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};

/// The far end of virtual sockets. A handle: clones are the same.
pub trait Far: Clone + Send + Sync + 'static {
    /// A connection's bytes.
    type Stream: FarStream;
    /// A port that is listened on.
    type Listening: FarListening<Stream = Self::Stream>;

    /// Connects from the cluster address, with these options of the socket there. Dropped before it is done, it leaves nothing.
    ///
    /// # Errors
    /// What connect(2) at the I/O server reported, as an OS error.
    fn connect(
        &self,
        to: SocketAddr,
        options: AppOptions,
    ) -> impl Future<Output = io::Result<Connected<Self::Stream>>> + Send;

    /// Listens on every cluster address of the family.
    ///
    /// # Errors
    /// What listen(2) or bind(2) at the I/O server reported, as an OS error.
    fn listen(
        &self,
        port: u16,
        family: Family,
    ) -> impl Future<Output = io::Result<Self::Listening>> + Send;

    /// The ports that it would refuse, as they are now and whenever they change.
    fn taken(&self) -> watch::Receiver<Vec<AppTaken>>;
}

/// A port that the I/O server listens on for us; given up when dropped.
pub trait FarListening: Send + 'static {
    /// A connection's bytes.
    type Stream: FarStream;

    /// The next connection. Cancel safe.
    ///
    /// # Errors
    /// An OS error if no more connections will come.
    fn accept(&mut self) -> impl Future<Output = io::Result<Accepted<Self::Stream>>> + Send;
}

/// A connection's bytes. Shutting down half closes.
pub trait FarStream: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static {
    /// Ends the connection with a RST.
    fn reset(self);

    /// Ends when the connection breaks, be it while nobody reads or writes. By default it never does: then a break is
    /// noticed by who reads or writes.
    fn broken(&self) -> impl Future<Output = ()> + Send + 'static {
        std::future::pending()
    }

    /// What sets options of its socket, also while it is in use; does nothing after its end.
    fn setter(&self) -> impl Fn(AppOptions) + Send + Sync + 'static;
}

/// Which cluster addresses to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4 alone.
    V4,
    /// IPv6 alone.
    V6,
    /// Every one, as an IPv6 socket without IPV6_V6ONLY does.
    Both,
}

/// A connection that a program made.
#[derive(Debug)]
pub struct Connected<S> {
    /// The cluster address and port that it was made from.
    pub local: SocketAddr,
    /// Its bytes.
    pub stream: S,
}

/// A client's connection.
#[derive(Debug)]
pub struct Accepted<S> {
    /// The client.
    pub peer: SocketAddr,
    /// The cluster address and port that it connected to.
    pub local: SocketAddr,
    /// Its bytes.
    pub stream: S,
}
