//! The end of a connection that every data server refused: a RST in the server's name.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use anyhow::{Context, Result};
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TcpHeader, TransportSlice};
use socket2::{Domain, Protocol, Socket, Type};

/// IPPROTO_RAW: the packet brings its own IP header (raw(7)).
const OWN_HEADER: i32 = 255;
const TTL: u8 = 64;

/// Sends RSTs; the kernel finds the way to the client.
pub struct Resetter {
    socket: Socket,
}

impl Resetter {
    /// Opens the raw socket.
    pub fn open() -> Result<Self> {
        let socket = Socket::new(
            Domain::IPV4,
            Type::RAW.nonblocking(),
            Some(Protocol::from(OWN_HEADER)),
        )
        .context("cannot open a raw socket")?;
        Ok(Self { socket })
    }

    /// Answers a client's packet, IP header first, with the RST of RFC 9293, 3.5.2: its sequence
    /// number is what the client acknowledged, so that the client believes it.
    pub fn reset(&self, packet: &[u8]) -> Result<()> {
        let (client, reset) = answer(packet).context("the refused packet is not TCP over IPv4")?;
        let to = SocketAddr::V4(SocketAddrV4::new(client, 0));
        self.socket
            .send_to(&reset, &to.into())
            .with_context(|| format!("cannot send a RST to {client}"))?;
        Ok(())
    }
}

fn answer(packet: &[u8]) -> Option<(Ipv4Addr, Vec<u8>)> {
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) = (sliced.net, sliced.transport)
    else {
        return None;
    };
    if !tcp.ack() || tcp.rst() {
        return None;
    }
    let (client, cluster) = (ip.header().source_addr(), ip.header().destination_addr());
    let mut header = TcpHeader::new(
        tcp.destination_port(),
        tcp.source_port(),
        tcp.acknowledgment_number(),
        0,
    );
    header.rst = true;
    let builder = PacketBuilder::ipv4(cluster.octets(), client.octets(), TTL).tcp_header(header);
    let mut reset = Vec::with_capacity(builder.size(0));
    builder.write(&mut reset, &[]).ok()?;
    Some((client, reset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Vec<u8> {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv4([10, 77, 0, 1], [10, 77, 0, 100], 64)
            .tcp(40000, 80, 1000, 65535)
            .ack(2000);
        let _ = builder.write(&mut packet, b"GET / HTTP/1.1\r\n\r\n");
        packet
    }

    #[test]
    fn the_reset_is_what_the_client_acknowledged() {
        let (client, reset) = answer(&request()).unwrap_or_else(|| panic!("no answer"));
        assert_eq!(client, Ipv4Addr::new(10, 77, 0, 1));
        let sliced = SlicedPacket::from_ip(&reset).unwrap_or_else(|error| panic!("{error}"));
        let Some(TransportSlice::Tcp(tcp)) = sliced.transport else {
            panic!("not TCP")
        };
        assert!(tcp.rst() && !tcp.ack());
        assert_eq!((tcp.source_port(), tcp.destination_port()), (80, 40000));
        assert_eq!(tcp.sequence_number(), 2000);
    }

    #[test]
    fn nothing_answers_a_reset_or_rubbish() {
        assert!(answer(&[]).is_none());
        assert!(answer(&request()[..30]).is_none());
        let mut packet = Vec::new();
        let _ = PacketBuilder::ipv4([1, 2, 3, 4], [5, 6, 7, 8], 64)
            .tcp(1, 2, 3, 4)
            .rst()
            .ack(1)
            .write(&mut packet, &[]);
        assert!(answer(&packet).is_none());
    }
}
