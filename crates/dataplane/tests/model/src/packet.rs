//! One TCP segment of a client, and the frames that carry it.

use std::net::{Ipv4Addr, SocketAddrV4};

use crate::{
    cluster::{CLIENT_MAC, CS_MAC, HTTP},
    options,
};

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const PSH: u8 = 8;
pub const ACK: u8 = 16;

pub const ETHERNET_BYTES: usize = 14;
const IP_BYTES: usize = 20;
const TCP_BYTES: usize = 20;

/// A segment from a client to the service, or back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The address at the client's end, whoever sends.
    pub client: SocketAddrV4,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub payload: Vec<u8>,
}

impl Packet {
    /// Where its payload ends in the client's stream.
    pub fn end(&self) -> u32 {
        self.seq.wrapping_add(self.payload.len() as u32)
    }

    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The IP packet, as the client sends it.
    pub fn bytes(&self) -> Vec<u8> {
        let options = if self.has(SYN) {
            options::linux(123_456)
        } else {
            options::linux_later(123_460, 7)
        };
        let mut tcp = Vec::with_capacity(TCP_BYTES + options.len() + self.payload.len());
        tcp.extend(self.client.port().to_be_bytes());
        tcp.extend(HTTP.port().to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        tcp.push(((TCP_BYTES + options.len()) as u8 / 4) << 4);
        tcp.push(self.flags);
        tcp.extend([0xfa, 0xf0, 0, 0, 0, 0]);
        tcp.extend(options);
        tcp.extend(&self.payload);
        let pseudo = pseudo_header(*self.client.ip(), *HTTP.ip(), 6, tcp.len());
        let sum = checksum(&[&pseudo, &tcp]);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        let mut packet = ip_header(*self.client.ip(), *HTTP.ip(), 6, tcp.len());
        packet.extend(tcp);
        packet
    }

    /// The same as it reaches the connection server.
    pub fn frame(&self) -> Vec<u8> {
        ethernet(CLIENT_MAC, CS_MAC, &self.bytes())
    }

    /// Reads a packet that a client has sent, or that is sent to one.
    pub fn read(ip: &[u8]) -> Option<Self> {
        let tcp_at = usize::from(ip.first()? & 15) * 4;
        let bytes = usize::from(number16(ip, 2)?);
        let tcp = ip.get(tcp_at..bytes)?;
        let payload_at = usize::from(tcp.get(12)? >> 4) * 4;
        let end = |address_at, port_at| {
            let address = <[u8; 4]>::try_from(ip.get(address_at..address_at + 4)?).ok()?;
            Some(SocketAddrV4::new(address.into(), number16(tcp, port_at)?))
        };
        let (from, to) = (end(12, 0)?, end(16, 2)?);
        Some(Self {
            client: if from == HTTP { to } else { from },
            seq: number32(tcp, 4)?,
            ack: number32(tcp, 8)?,
            flags: tcp[13],
            payload: tcp.get(payload_at..)?.to_vec(),
        })
    }
}

/// An IPv4 header in front of so many bytes.
pub fn ip_header(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, behind: usize) -> Vec<u8> {
    let bytes = (IP_BYTES + behind) as u16;
    let mut header = vec![0x45, 0, 0, 0, 0x1c, 0x46, 0x40, 0, 63, protocol, 0, 0];
    header[2..4].copy_from_slice(&bytes.to_be_bytes());
    header.extend(from.octets());
    header.extend(to.octets());
    let sum = checksum(&[&header]);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header
}

pub fn ethernet(from: [u8; 6], to: [u8; 6], ip: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(ETHERNET_BYTES + ip.len());
    frame.extend(to);
    frame.extend(from);
    frame.extend([8, 0]);
    frame.extend(ip);
    frame
}

fn pseudo_header(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, bytes: usize) -> [u8; 12] {
    let mut header = [0; 12];
    header[..4].copy_from_slice(&from.octets());
    header[4..8].copy_from_slice(&to.octets());
    header[9] = protocol;
    header[10..].copy_from_slice(&(bytes as u16).to_be_bytes());
    header
}

fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u32;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn number16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn number32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
