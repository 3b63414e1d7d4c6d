//! What the agent needs of the data server's program, and of the routes by which this node judges requests.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use baton_abi::{Door, HaveRead, Kept, TcbKey};

use crate::http::asked::{Asked, Protocol};

/// Where a request goes, by this node's routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// The route that the request takes. `None`: no route takes it, and its pool is the service's own.
    pub route: Option<Route>,
    /// The hash of the request's normalised path.
    pub path: Option<u64>,
}

/// A route that leads to a pool, both as the numbers by which the program knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Number of the route.
    pub number: u16,
    /// Number of the route's pool.
    pub pool: u16,
}

/// What the agent has to know of a service.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// The service's number in the maps.
    pub id: u16,
    /// What its clients speak.
    pub protocol: Protocol,
    /// How long they may take for the head of a request.
    pub head_timeout: Duration,
    /// Whether a TLS connection that no route takes is refused. Otherwise the service's own pool has it.
    pub refuses_unknown_names: bool,
}

/// The data server's program, and the routes that decide where requests go.
pub trait Program: Send + Sync + 'static {
    /// Returns the door of the connection that this socket has.
    ///
    /// # Errors
    /// The program's maps cannot be read.
    fn door(&self, socket: BorrowedFd<'_>, flow: &TcbKey) -> io::Result<Option<Door>>;

    /// The service at this cluster address and port. `None`: nobody answers there anymore.
    fn served(&self, cluster: SocketAddrV4) -> Option<Served>;

    /// Where goes what a client of this service asks for. `None`: that is not known yet.
    fn lead(&self, service: u16, asked: &Asked) -> Option<Lead>;

    /// Tells the program what was read of the request with which this socket's connection begins.
    ///
    /// # Errors
    /// The program's maps cannot be written.
    fn tell(&self, socket: BorrowedFd<'_>, read: &HaveRead) -> io::Result<()>;

    /// Tells the program that this node keeps, from the sequence number `begin` on, what was read of the connection,
    /// until the connection's next socket has it.
    ///
    /// # Errors
    /// The program's maps cannot be written.
    fn keep(&self, flow: &TcbKey, begin: u32) -> io::Result<()>;

    /// What is known of the connection's next socket, on whatever data server it is. `None`: there was no room for the
    /// connection.
    ///
    /// # Errors
    /// The program's maps cannot be read.
    fn kept(&self, flow: &TcbKey) -> io::Result<Option<Kept>>;

    /// The MAC address of the interface by which frames are sent in.
    fn mac(&self) -> [u8; 6];

    /// Sends a client's frame in, as if it came from the network.
    ///
    /// # Errors
    /// The kernel refuses it.
    fn send(&self, frame: &[u8]) -> io::Result<()>;

    /// Probes the client whose frame this is. The client answers with an acknowledgement of its position, which takes
    /// the way of all that it sends.
    ///
    /// # Errors
    /// The kernel refuses it.
    fn probe(&self, frame: &[u8]) -> io::Result<()>;
}
