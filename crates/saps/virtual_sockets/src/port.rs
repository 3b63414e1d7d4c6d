//! The port that the agent's answers come from.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
};

use socket2::{Domain, Socket, Type};

use crate::{Error, Result};

/// One port at 127.0.0.1 and ::1. Sockets that are bound to it and do not listen keep it from others. The agent's
/// answers come from sockets that share the port with these (SO_REUSEADDR), each to another program's port.
pub(crate) struct AgentPort {
    number: u16,
    _held: Vec<Socket>,
}

impl AgentPort {
    /// Takes the port that the last agent had if it is free: calls that were made then wait for an answer from there.
    /// Takes any port otherwise, or if `last` is 0.
    pub fn take(last: u16) -> Result<Self> {
        let taken = Self::try_take(last).or_else(|error| match last {
            0 => Err(error),
            _ => Self::try_take(0),
        });
        taken.map_err(Error::system("take a port on loopback for the agent"))
    }

    fn try_take(wanted: u16) -> io::Result<Self> {
        let v4 = shared(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), wanted))?;
        let local = v4.local_addr()?.as_socket();
        let number = local.map_or(0, |address| address.port());
        let mut held = vec![v4];
        match shared(SocketAddr::new(Ipv6Addr::LOCALHOST.into(), number)) {
            Ok(v6) => held.push(v6),
            // The host has no IPv6.
            Err(error) if no_ipv6(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(Self {
            number,
            _held: held,
        })
    }

    pub fn number(&self) -> u16 {
        self.number
    }
}

fn no_ipv6(error: &io::Error) -> bool {
    use nix::errno::Errno;
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(errno, Some(Errno::EADDRNOTAVAIL | Errno::EAFNOSUPPORT))
}

/// Makes a socket that is bound to `address`. Other sockets may be bound to it too, as long as none listens.
pub(crate) fn shared(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM.nonblocking(),
        None,
    )?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}
