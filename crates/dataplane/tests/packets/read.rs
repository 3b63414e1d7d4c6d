//! Frames that come out of a program, taken apart and verified by `etherparse`.

use std::net::{Ipv4Addr, SocketAddrV4};

use baton_abi::ETHER_SWITCHED;
use etherparse::{EtherType, Ethernet2Header, IpNumber, Ipv4Header, TcpHeader, TcpSlice};

/// The length of what an LCCP message has between its outer IP header and the inner packet, in bytes.
const LCCP_HEADER: usize = 80;

/// An Ethernet frame with an IPv4 packet whose header checksum is right.
#[derive(Clone, Debug)]
pub struct Packet {
    pub ethernet: Ethernet2Header,
    pub ip: Ipv4Header,
    /// The bytes behind the IP header, as many as that header says.
    pub body: Vec<u8>,
    /// The number of bytes in the frame behind the packet.
    pub padding: usize,
}

/// A TCP segment whose checksum is right.
#[derive(Clone, Debug)]
pub struct Tcp {
    pub header: TcpHeader,
    pub payload: Vec<u8>,
}

impl Packet {
    pub fn read(frame: &[u8]) -> Result<Self, String> {
        let (ethernet, rest) = Ethernet2Header::from_slice(frame).map_err(|e| e.to_string())?;
        if ethernet.ether_type != EtherType::IPV4 {
            return Err(format!("not IPv4: {:?}", ethernet.ether_type));
        }
        let (ip, behind) = Ipv4Header::from_slice(rest).map_err(|e| e.to_string())?;
        if ip.calc_header_checksum() != ip.header_checksum {
            return Err(format!("IP checksum {:#06x} is wrong", ip.header_checksum));
        }
        let length: usize = ip.payload_len().map_err(|e| e.to_string())?.into();
        let body = behind
            .get(..length)
            .ok_or_else(|| format!("{} bytes, not the {length} that IP says", behind.len()))?;
        Ok(Self {
            ethernet,
            ip,
            body: body.to_vec(),
            padding: behind.len() - length,
        })
    }

    pub fn tcp(&self) -> Result<Tcp, String> {
        let segment = TcpSlice::from_slice(&self.body).map_err(|e| e.to_string())?;
        let right = segment
            .calc_checksum_ipv4(self.ip.source, self.ip.destination)
            .map_err(|e| e.to_string())?;
        if right != segment.checksum() {
            return Err(format!(
                "TCP checksum {:#06x}, should be {right:#06x}",
                segment.checksum()
            ));
        }
        Ok(Tcp {
            header: segment.to_header(),
            payload: segment.payload().to_vec(),
        })
    }

    pub fn from(&self) -> Ipv4Addr {
        self.ip.source.into()
    }

    pub fn to(&self) -> Ipv4Addr {
        self.ip.destination.into()
    }
}

impl Tcp {
    /// Letters of the flags that are set, in the order F S R P A U E C N.
    pub fn flags(&self) -> String {
        let h = &self.header;
        [
            (h.fin, 'F'),
            (h.syn, 'S'),
            (h.rst, 'R'),
            (h.psh, 'P'),
            (h.ack, 'A'),
            (h.urg, 'U'),
            (h.ece, 'E'),
            (h.cwr, 'C'),
            (h.ns, 'N'),
        ]
        .into_iter()
        .filter_map(|(set, letter)| set.then_some(letter))
        .collect()
    }
}

/// The sender and the receiver of a segment.
pub fn ends(packet: &Packet, tcp: &Tcp) -> (SocketAddrV4, SocketAddrV4) {
    (
        SocketAddrV4::new(packet.from(), tcp.header.source_port),
        SocketAddrV4::new(packet.to(), tcp.header.destination_port),
    )
}

/// Verifies every checksum of a frame, of a frame inside it, and of the packet inside a message. A frame that is not
/// IPv4 has no checksum that the programs could break.
pub fn verify_checksums(frame: &[u8]) -> Result<(), String> {
    let (ethernet, rest) = Ethernet2Header::from_slice(frame).map_err(|e| e.to_string())?;
    if u32::from(ethernet.ether_type.0) == ETHER_SWITCHED && rest.len() >= 14 {
        return verify_checksums(rest);
    }
    if ethernet.ether_type != EtherType::IPV4 {
        return Ok(());
    }
    let packet = Packet::read(frame)?;
    if packet.ip.more_fragments || packet.ip.fragment_offset.value() != 0 {
        return Ok(());
    }
    match packet.ip.protocol {
        IpNumber::TCP => packet.tcp().map(drop),
        IpNumber(253) if packet.body.len() > LCCP_HEADER && rest.len() > LCCP_HEADER => {
            let inner = [&frame[..14], &packet.body[LCCP_HEADER..]].concat();
            verify_checksums(&inner).map_err(|e| format!("inner packet: {e}"))
        }
        _ => Ok(()),
    }
}
