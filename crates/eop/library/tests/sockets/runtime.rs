//! Blocking calls on the sockets of `eop::tokio`, as the tests make them.

use std::net::SocketAddr;
use std::sync::LazyLock;

use eop::{Error, NotAllowed, Options, Peer, ServerOptions, tokio as on};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

pub struct Socket(on::Socket);
pub struct Listener(on::Listener);
pub struct Session(on::Session);

pub fn connect(server: SocketAddr, options: Options) -> Result<Socket, Error> {
    RUNTIME.block_on(on::connect(server, options)).map(Socket)
}

impl Socket {
    pub fn peer(&self) -> Peer {
        self.0.peer()
    }

    pub fn server(&self) -> SocketAddr {
        self.0.server()
    }

    pub fn not_allowed(&self) -> Option<NotAllowed> {
        self.0.not_allowed()
    }

    pub fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        RUNTIME.block_on(self.0.send(message))
    }

    pub fn recv(&mut self) -> Result<Option<&[u8]>, Error> {
        RUNTIME.block_on(self.0.recv())
    }
}

impl Listener {
    pub fn bind(at: SocketAddr, options: ServerOptions) -> Result<Self, Error> {
        let _runtime = RUNTIME.enter();
        on::Listener::bind(at, options).map(Self)
    }

    pub fn accept(&self) -> Result<Session, Error> {
        RUNTIME.block_on(self.0.accept()).map(Session)
    }

    pub fn local_addr(&self) -> Result<SocketAddr, Error> {
        self.0.local_addr()
    }

    pub fn tcp(&self) -> &TcpListener {
        self.0.tcp()
    }
}

impl Session {
    pub fn fell_back_from(&self) -> Option<SocketAddr> {
        self.0.fell_back_from()
    }

    pub fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        RUNTIME.block_on(self.0.send(message))
    }

    pub fn send_message(&mut self, message: &mut eop::Message) -> Result<(), Error> {
        RUNTIME.block_on(self.0.send_message(message))
    }

    pub fn recv(&mut self) -> Result<Option<&[u8]>, Error> {
        RUNTIME.block_on(self.0.recv())
    }

    pub fn redirect(self, answer: Option<&[u8]>, target: SocketAddr) -> Result<(), Error> {
        RUNTIME.block_on(self.0.redirect(answer, target))
    }

    pub fn can_redirect(&mut self) -> Result<bool, Error> {
        RUNTIME.block_on(self.0.can_redirect())
    }
}
