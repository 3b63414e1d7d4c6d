//! A socket that sends whole Ethernet frames out of one interface.

use std::io;
use std::mem::size_of;

use socket2::{Domain, SockAddr, SockAddrStorage, Socket, Type};

use crate::{Error, Link, Result};

/// A sending socket that is bound to an interface. It receives nothing.
#[derive(Debug)]
pub struct PacketSocket {
    socket: Socket,
    interface: String,
}

impl PacketSocket {
    /// A socket for one interface.
    ///
    /// # Errors
    /// [`Error::System`] without CAP_NET_RAW.
    pub fn open(link: &Link) -> Result<Self> {
        let open = || -> io::Result<Socket> {
            // Protocol 0: no frame is ever queued for receiving (packet(7)).
            let socket = Socket::new(Domain::PACKET, Type::RAW.nonblocking(), None)?;
            socket.bind(&address(link))?;
            Ok(socket)
        };
        let doing = format!("open a packet socket on {}", link.name);
        Ok(Self {
            socket: open().map_err(Error::system(doing))?,
            interface: link.name.clone(),
        })
    }

    /// Sends a frame, Ethernet header included.
    ///
    /// # Errors
    /// [`Error::System`], for instance when the interface is down.
    pub fn send(&self, frame: &[u8]) -> Result<()> {
        let doing = format!("send a frame out of {}", self.interface);
        self.socket
            .send(frame)
            .map(|_| ())
            .map_err(Error::system(doing))
    }
}

/// `struct sockaddr_ll` (packet(7)) with nothing but the interface set.
fn address(link: &Link) -> SockAddr {
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: sockaddr_ll is one of the socket address structures that the storage is for: it
    // fits, is aligned, and is valid when all zero.
    let raw = unsafe { storage.view_as::<libc::sockaddr_ll>() };
    raw.sll_family = libc::AF_PACKET as libc::sa_family_t;
    // An index is a positive C int in the kernel; netlink merely shows it unsigned.
    raw.sll_ifindex = link.index as libc::c_int;
    // SAFETY: the storage now holds a sockaddr_ll with its family set, of just this size.
    unsafe { SockAddr::new(storage, size_of::<libc::sockaddr_ll>() as libc::socklen_t) }
}
