//! Segments that the connection server sends to clients in the server's name. Most are about a connection that no
//! longer has a data server: all have refused it, or its owner is dead.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use anyhow::{Context, Result};
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TcpHeader, TransportSlice};
use socket2::{Domain, Protocol, Socket, Type};

/// IPPROTO_RAW: the sender writes the IP header itself (raw(7)).
const OWN_HEADER: i32 = 255;
const TTL: u8 = 64;

/// A connection and its position: what its client sends and expects next.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub client: SocketAddrV4,
    pub cluster: SocketAddrV4,
    /// The sequence number that the client sends next.
    pub last_seq: u32,
    /// The sequence number up to which the client has acknowledged.
    pub last_ack: u32,
}

/// Sends segments to clients by a raw socket. The kernel finds the way to the client.
pub struct Segments {
    socket: Socket,
}

impl Segments {
    /// Opens the raw socket.
    pub fn open() -> Result<Self> {
        let kind = Type::RAW.nonblocking();
        let socket = Socket::new(Domain::IPV4, kind, Some(Protocol::from(OWN_HEADER)))
            .context("cannot open a raw socket")?;
        Ok(Self { socket })
    }

    /// Probes the client, which answers with an acknowledgement of its exact position.
    pub fn probe(&self, known: &Known) -> Result<()> {
        self.send(*known.client.ip(), &probe(known))
    }

    /// Tells the client that the connection is gone.
    pub fn reset(&self, known: &Known) -> Result<()> {
        self.send(*known.client.ip(), &reset(known))
    }

    /// Answers a client's packet, IP header first, with the RST of RFC 9293, 3.5.2: its sequence number is
    /// what the client acknowledged.
    pub fn refuse(&self, packet: &[u8]) -> Result<()> {
        self.reset(&asked(packet).context("the refused packet is not TCP over IPv4")?)
    }

    /// Probes the client that sent a packet, which is given with its IP header.
    pub fn probe_sender(&self, packet: &[u8]) -> Result<()> {
        self.probe(&asked(packet).context("what the client sent is not TCP over IPv4")?)
    }

    fn send(&self, client: Ipv4Addr, packet: &[u8]) -> Result<()> {
        let to = SocketAddr::V4(SocketAddrV4::new(client, 0));
        self.socket
            .send_to(packet, &to.into())
            .with_context(|| format!("cannot send to {client}"))?;
        Ok(())
    }
}

/// Makes a segment with one byte that the client already has. By RFC 9293, 3.10.7.4, a segment outside of the window is
/// answered with an acknowledgement, which says what comes next on both sides. The client ignores the byte itself. The
/// segment has no timestamps, so the client does not judge it by them.
fn probe(known: &Known) -> Vec<u8> {
    let mut header = TcpHeader::new(
        known.cluster.port(),
        known.client.port(),
        known.last_ack.wrapping_sub(1),
        u16::MAX,
    );
    header.ack = true;
    header.acknowledgment_number = known.last_seq;
    write(known, header, &[0])
}

/// Makes a RST that the client accepts: its sequence number is the next that the client expects (RFC 5961, 3.2).
fn reset(known: &Known) -> Vec<u8> {
    let mut header = TcpHeader::new(known.cluster.port(), known.client.port(), known.last_ack, 0);
    header.rst = true;
    write(known, header, &[])
}

/// Takes the connection's position from a packet of the client; `None` if the packet must not be answered.
fn asked(packet: &[u8]) -> Option<Known> {
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) = (sliced.net, sliced.transport)
    else {
        return None;
    };
    if !tcp.ack() || tcp.rst() {
        return None;
    }
    let header = ip.header();
    Some(Known {
        client: SocketAddrV4::new(header.source_addr(), tcp.source_port()),
        cluster: SocketAddrV4::new(header.destination_addr(), tcp.destination_port()),
        last_seq: tcp.sequence_number(),
        last_ack: tcp.acknowledgment_number(),
    })
}

fn write(known: &Known, header: TcpHeader, payload: &[u8]) -> Vec<u8> {
    let (client, cluster) = (known.client.ip().octets(), known.cluster.ip().octets());
    let builder = PacketBuilder::ipv4(cluster, client, TTL).tcp_header(header);
    let mut packet = Vec::with_capacity(builder.size(payload.len()));
    // Writing to a vector cannot fail, and the lengths fit an IPv4 packet.
    let _ = builder.write(&mut packet, payload);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        Known {
            client: SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 1), 40000),
            cluster: SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 100), 80),
            last_seq: 1000,
            last_ack: 0,
        }
    }

    fn tcp(packet: &[u8]) -> (u32, u32, bool, bool, usize) {
        let sliced = SlicedPacket::from_ip(packet).unwrap_or_else(|error| panic!("{error}"));
        let Some(TransportSlice::Tcp(tcp)) = sliced.transport else {
            panic!("not TCP")
        };
        assert_eq!((tcp.source_port(), tcp.destination_port()), (80, 40000));
        (
            tcp.sequence_number(),
            tcp.acknowledgment_number(),
            tcp.ack(),
            tcp.rst(),
            tcp.payload().len(),
        )
    }

    #[test]
    fn a_probe_is_the_byte_before_the_next() {
        assert_eq!(tcp(&probe(&known())), (u32::MAX, 1000, true, false, 1));
    }

    #[test]
    fn a_reset_is_where_the_client_is() {
        assert_eq!(tcp(&reset(&known())), (0, 0, false, true, 0));
    }

    fn request() -> Vec<u8> {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv4([10, 77, 0, 1], [10, 77, 0, 100], 64)
            .tcp(40000, 80, 1000, 65535)
            .ack(2000);
        let _ = builder.write(&mut packet, b"GET / HTTP/1.1\r\n\r\n");
        packet
    }

    #[test]
    fn the_answer_to_a_packet_is_what_the_client_acknowledged() {
        let asked = asked(&request()).unwrap_or_else(|| panic!("no answer"));
        assert_eq!(asked.client, known().client);
        assert_eq!(tcp(&reset(&asked)), (2000, 0, false, true, 0));
    }

    #[test]
    fn nothing_answers_a_reset_or_rubbish() {
        assert!(asked(&[]).is_none());
        assert!(asked(&request()[..30]).is_none());
        let mut packet = Vec::new();
        let _ = PacketBuilder::ipv4([1, 2, 3, 4], [5, 6, 7, 8], 64)
            .tcp(1, 2, 3, 4)
            .rst()
            .ack(1)
            .write(&mut packet, &[]);
        assert!(asked(&packet).is_none());
    }
}
