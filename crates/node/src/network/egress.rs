//! Sending of whole frames, each by the interface that it is for.

use anyhow::Result;
use baton_net::{Link, PacketSocket};

/// A packet socket for each interface of the node.
pub struct Egress {
    sockets: Vec<(Link, PacketSocket)>,
}

impl Egress {
    /// Opens the sockets. The first interface is the one by which clients' packets come.
    pub fn open(links: &[Link]) -> Result<Self> {
        let sockets = links
            .iter()
            .map(|link| Ok((link.clone(), PacketSocket::open(link)?)))
            .collect::<Result<_>>()?;
        Ok(Self { sockets })
    }

    /// Sends a frame by the interface whose MAC address it comes from.
    pub fn send(&self, frame: &[u8]) -> Result<()> {
        let source = frame.get(6..12);
        self.send_where(frame, |link| source == Some(&link.mac))
    }

    /// Sends a frame by the interface with this index.
    pub fn send_by(&self, interface: u32, frame: &[u8]) -> Result<()> {
        self.send_where(frame, |link| link.index == interface)
    }

    /// Sends a frame by the first interface for which `is_it` holds. If there is none, because an interface was given
    /// another MAC address or index, the frame leaves by the node's first interface.
    fn send_where(&self, frame: &[u8], is_it: impl Fn(&Link) -> bool) -> Result<()> {
        let named = self.sockets.iter().find(|(link, _)| is_it(link));
        match named.or(self.sockets.first()) {
            Some((_, socket)) => Ok(socket.send(frame)?),
            None => Ok(()),
        }
    }
}
