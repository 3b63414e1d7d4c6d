//! Packets of clients, described in words. `etherparse` writes them and computes their checksums.

use std::net::{Ipv4Addr, SocketAddrV4};

use etherparse::{EtherType, Ethernet2Header, IpNumber, Ipv4Header, Ipv4Options, TcpHeader};

use crate::{
    cluster::{CLIENT_MAC, CS_MAC, WEB, fresh_client},
    options,
};

pub const GET: &[u8] = b"GET /whoami HTTP/1.1\r\nHost: 10.77.0.100\r\n\r\n";

/// The offset of the IP header in a frame.
pub const IP: usize = 14;
/// The offset of the TCP header in a frame without IP options.
pub const TCP: usize = IP + 20;

/// One TCP segment.
#[derive(Clone, Debug)]
pub struct Segment {
    pub from: SocketAddrV4,
    pub to: SocketAddrV4,
    pub seq: u32,
    pub ack: u32,
    /// Letters of the flags that are set: F S R P A U E C.
    pub flags: &'static str,
    /// The TCP options, padded with END to whole words.
    pub options: Vec<u8>,
    /// The IP options, which are whole words.
    pub ip_options: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Segment {
    pub fn flags(self, flags: &'static str) -> Self {
        Self { flags, ..self }
    }

    pub fn options(self, options: impl Into<Vec<u8>>) -> Self {
        let options = options.into();
        Self { options, ..self }
    }

    pub fn ip_options(self, ip_options: impl Into<Vec<u8>>) -> Self {
        let ip_options = ip_options.into();
        Self { ip_options, ..self }
    }

    pub fn payload(self, payload: impl Into<Vec<u8>>) -> Self {
        let payload = payload.into();
        Self { payload, ..self }
    }

    pub fn seq(self, seq: u32) -> Self {
        Self { seq, ..self }
    }

    pub fn to(self, to: SocketAddrV4) -> Self {
        Self { to, ..self }
    }

    /// The client of the packet's connection, as far as the packet shows it.
    pub fn client(&self) -> Client {
        Client {
            address: self.from,
            service: self.to,
            isn: 0,
        }
    }

    /// The IP packet.
    pub fn packet(&self) -> Vec<u8> {
        let tcp = self.tcp();
        let mut ip = ip_header(
            IpNumber::TCP,
            *self.from.ip(),
            *self.to.ip(),
            &self.ip_options,
        );
        ip.set_payload_len(tcp.header_len() + self.payload.len())
            .unwrap();
        ip.header_checksum = ip.calc_header_checksum();
        [&ip.to_bytes()[..], &tcp.to_bytes(), &self.payload].concat()
    }

    /// The packet as it reaches the connection server.
    pub fn frame(&self) -> Vec<u8> {
        ethernet(CLIENT_MAC, CS_MAC, EtherType::IPV4, &self.packet())
    }

    fn tcp(&self) -> TcpHeader {
        let has = |flag| self.flags.contains(flag);
        let mut tcp = TcpHeader::new(self.from.port(), self.to.port(), self.seq, 64_240);
        tcp.acknowledgment_number = self.ack;
        (tcp.fin, tcp.syn, tcp.rst, tcp.psh) = (has('F'), has('S'), has('R'), has('P'));
        (tcp.ack, tcp.urg, tcp.ece, tcp.cwr) = (has('A'), has('U'), has('E'), has('C'));
        tcp.set_options_raw(&self.options).unwrap();
        tcp.checksum = tcp
            .calc_checksum_ipv4_raw(
                self.from.ip().octets(),
                self.to.ip().octets(),
                &self.payload,
            )
            .unwrap();
        tcp
    }
}

/// A connection as its client sees it.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    pub address: SocketAddrV4,
    pub service: SocketAddrV4,
    pub isn: u32,
}

impl Client {
    /// A client of the web service whose address and port no other case uses.
    pub fn fresh() -> Self {
        Self::of(WEB)
    }

    pub fn of(service: SocketAddrV4) -> Self {
        Self {
            address: fresh_client(),
            service,
            isn: 0x1122_3343,
        }
    }

    /// Another connection from the same address and port.
    pub fn again(self) -> Self {
        let isn = self.isn.wrapping_add(0x0100_0001);
        Self { isn, ..self }
    }

    /// A client with an address that no other client has. Other clients share a network, and mostly the address.
    pub fn from_afar(service: SocketAddrV4) -> Self {
        let address = Ipv4Addr::from_bits(0x6440_0000 | fastrand::u32(..1 << 22));
        Self {
            address: SocketAddrV4::new(address, fastrand::u16(1024..)),
            ..Self::of(service)
        }
    }

    /// The client with a port that no fresh client has.
    pub fn at_another_port(self) -> Self {
        let port = fastrand::u16(1..1024);
        let address = SocketAddrV4::new(*self.address.ip(), port);
        Self { address, ..self }
    }

    pub fn syn(&self) -> Segment {
        Segment {
            from: self.address,
            to: self.service,
            seq: self.isn,
            ack: 0,
            flags: "S",
            options: options::linux(123_456),
            ip_options: Vec::new(),
            payload: Vec::new(),
        }
    }

    /// The last packet of the handshake. `isn` is the server's initial sequence number: the cookie.
    pub fn ack(&self, isn: u32) -> Segment {
        Segment {
            seq: self.isn.wrapping_add(1),
            ack: isn.wrapping_add(1),
            flags: "A",
            options: options::linux_later(123_460, 7),
            ..self.syn()
        }
    }

    /// The first request.
    pub fn get(&self, isn: u32) -> Segment {
        self.ack(isn).flags("PA").payload(GET)
    }

    /// The segment that follows when the server has sent `answered` bytes and the client `sent`.
    pub fn later(&self, isn: u32, sent: usize, answered: u32) -> Segment {
        let first = self.ack(isn);
        Segment {
            seq: first.seq.wrapping_add(sent as u32),
            ack: first.ack.wrapping_add(answered),
            ..first
        }
    }
}

pub fn ethernet(
    source: [u8; 6],
    destination: [u8; 6],
    ether_type: EtherType,
    payload: &[u8],
) -> Vec<u8> {
    let header = Ethernet2Header {
        source,
        destination,
        ether_type,
    };
    [&header.to_bytes()[..], payload].concat()
}

/// An IP packet of any protocol.
pub fn ip_packet(protocol: IpNumber, from: Ipv4Addr, to: Ipv4Addr, payload: &[u8]) -> Vec<u8> {
    ip_packet_with_options(protocol, from, to, &[], payload)
}

pub fn ip_packet_with_options(
    protocol: IpNumber,
    from: Ipv4Addr,
    to: Ipv4Addr,
    options: &[u8],
    payload: &[u8],
) -> Vec<u8> {
    let mut ip = ip_header(protocol, from, to, options);
    ip.set_payload_len(payload.len()).unwrap();
    ip.header_checksum = ip.calc_header_checksum();
    [&ip.to_bytes()[..], payload].concat()
}

/// The frame with other bytes at `at`.
pub fn patched(mut frame: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    frame
}

/// The frame with `bytes` of padding behind the packet, as short frames have on Ethernet.
pub fn padded(mut frame: Vec<u8>, bytes: usize) -> Vec<u8> {
    frame.resize(frame.len() + bytes, 0);
    frame
}

fn ip_header(protocol: IpNumber, from: Ipv4Addr, to: Ipv4Addr, options: &[u8]) -> Ipv4Header {
    let mut ip = Ipv4Header::new(0, 63, protocol, from.octets(), to.octets()).unwrap();
    ip.identification = 0x1c46;
    ip.dont_fragment = true;
    ip.options = Ipv4Options::try_from(options).unwrap();
    ip
}
