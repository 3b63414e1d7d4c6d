//! Frames of clients: read, and changed as their client could have sent them.
//!
//! The connection server's program hands such frames to user space. A frame is an Ethernet header, then one whole packet
//! of TCP over IPv4. Anything else is a [`BadFrame`].

mod acknowledge;
mod build;
mod divide;
mod line_up;

use std::net::SocketAddrV4;

use baton_abi::TcbKey;
use baton_wire::{Endpoint, Flow};
use etherparse::{IpNumber, Ipv4Slice, TcpHeader, TcpSlice};

pub use acknowledge::acknowledge;
pub use build::{PIECE, Stream};
pub use divide::divide;
pub use line_up::line_up;

/// The length of the header in front of IP.
pub const ETHERNET: usize = 14;
const IPV4: [u8; 2] = [8, 0];

/// Why a frame cannot be read, or not be changed as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// It is something else.
    #[error("the frame is not a whole packet of TCP over IPv4")]
    NotTcp,
    /// It would be divided into one part only.
    #[error("a frame cannot be divided at byte {at} of a payload of {length} bytes")]
    NothingBehind {
        /// Where it was to be divided.
        at: usize,
        /// How long its payload is.
        length: usize,
    },
    /// IPv4 has no packets of this length.
    #[error("the changed frame would be longer than a packet of IPv4 can be")]
    TooLong,
}

/// What a client's frame carries of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// From the client to the cluster.
    pub flow: Flow,
    /// What the maps have the flow's entry under.
    pub key: TcbKey,
    /// Sequence number of the first byte of the payload.
    pub seq: u32,
    /// Bytes of the stream.
    pub payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Reads a frame.
    ///
    /// # Errors
    /// It is not of TCP over IPv4, or its addresses are not those of a client and a cluster.
    pub fn read(frame: &'a [u8]) -> Result<Self, BadFrame> {
        let Layers { ip, tcp } = Layers::of(frame)?;
        let client = SocketAddrV4::new(ip.header().source_addr(), tcp.source_port());
        let cluster = SocketAddrV4::new(ip.header().destination_addr(), tcp.destination_port());
        Ok(Self {
            flow: Flow::new(Endpoint::from(client), Endpoint::from(cluster))
                .map_err(|_| BadFrame::NotTcp)?,
            key: TcbKey::of(client, cluster),
            seq: tcp.sequence_number(),
            payload: payload(tcp),
        })
    }
}

/// The headers of a frame, and what they carry.
struct Layers<'a> {
    ip: Ipv4Slice<'a>,
    tcp: TcpSlice<'a>,
}

impl<'a> Layers<'a> {
    fn of(frame: &'a [u8]) -> Result<Self, BadFrame> {
        let (ethernet, packet) = frame.split_at_checked(ETHERNET).ok_or(BadFrame::NotTcp)?;
        if !ethernet.ends_with(&IPV4) {
            return Err(BadFrame::NotTcp);
        }
        let ip = Ipv4Slice::from_slice(packet).map_err(|_| BadFrame::NotTcp)?;
        // What is between the two headers, an authentication header, would not outlive a change.
        if ip.is_payload_fragmented() || ip.header().protocol() != IpNumber::TCP {
            return Err(BadFrame::NotTcp);
        }
        let tcp = TcpSlice::from_slice(ip.payload().payload).map_err(|_| BadFrame::NotTcp)?;
        Ok(Self { ip, tcp })
    }
}

/// For as long as the frame lives, and not only the headers.
fn payload<'a>(tcp: TcpSlice<'a>) -> &'a [u8] {
    &tcp.slice()[tcp.header_len()..]
}

/// The same packet with another header of TCP, of the same length, and this payload. Both checksums are right.
fn rebuild(frame: &[u8], mut tcp: TcpHeader, payload: &[u8]) -> Result<Vec<u8>, BadFrame> {
    let mut ip = Layers::of(frame)?.ip.header().to_header();
    ip.set_payload_len(tcp.header_len() + payload.len())
        .map_err(|_| BadFrame::TooLong)?;
    ip.header_checksum = ip.calc_header_checksum();
    tcp.checksum = tcp
        .calc_checksum_ipv4(&ip, payload)
        .map_err(|_| BadFrame::TooLong)?;
    Ok([&frame[..ETHERNET], &ip.to_bytes(), &tcp.to_bytes(), payload].concat())
}

/// Lets the payload of this header begin so many bytes later in the stream.
fn advance(tcp: &mut TcpHeader, bytes: usize) {
    // Less than 64 KB, of numbers that wrap around.
    tcp.sequence_number = tcp.sequence_number.wrapping_add(bytes as u32);
    // Urgent data ends so many bytes behind the beginning, and may have ended already.
    let left = usize::from(tcp.urgent_pointer).checked_sub(bytes);
    tcp.urg &= left.is_some_and(|left| left > 0);
    tcp.urgent_pointer = left.map_or(0, |left| left as u16);
}

/// Frames of a client, for tests.
#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    /// With timestamps, if any: the client's, and the one that it echoes.
    pub fn frame(seq: u32, ack: u32, stamps: Option<(u8, u8)>, payload: &[u8]) -> Vec<u8> {
        let options = stamps.map(|(theirs, ours)| [1, 1, 8, 10, 0, 0, 0, theirs, 0, 0, 0, ours]);
        let options = options.as_ref().map_or(&[][..], |options| options);
        frame_with(seq, ack, options, payload)
    }

    pub fn frame_with(seq: u32, ack: u32, options: &[u8], payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
            .ipv4([198, 51, 100, 7], [10, 77, 0, 100], 63)
            .tcp(40_000, 80, seq, 501)
            .ack(ack)
            .psh()
            .fin()
            .options_raw(options)
            .unwrap()
            .write(&mut frame, payload)
            .unwrap();
        frame
    }

    pub fn tcp(frame: &[u8]) -> TcpSlice<'_> {
        Layers::of(frame).unwrap().tcp
    }

    /// Both checksums are right, and there is nothing behind the packet.
    pub fn is_whole(frame: &[u8]) {
        let Layers { ip, tcp } = Layers::of(frame).unwrap();
        let header = ip.header().to_header();
        assert_eq!(frame.len(), ETHERNET + usize::from(header.total_len));
        assert_eq!(header.header_checksum, header.calc_header_checksum());
        let checksum = tcp.to_header().calc_checksum_ipv4(&header, tcp.payload());
        assert_eq!(Ok(tcp.checksum()), checksum);
    }

    #[test]
    fn what_a_frame_carries() {
        let frame = frame(7, 77, None, b"GET /");
        let segment = Segment::read(&frame).unwrap();
        assert_eq!((segment.seq, segment.payload), (7, &b"GET /"[..]));
        let client = SocketAddrV4::new([198, 51, 100, 7].into(), 40_000);
        let cluster = SocketAddrV4::new([10, 77, 0, 100].into(), 80);
        assert_eq!(segment.key, TcbKey::of(client, cluster));
        // Ethernet fills up short frames.
        let padded = [&frame[..], &[0; 6]].concat();
        assert_eq!(Segment::read(&padded), Ok(segment));
        let rebuilt = rebuild(&padded, tcp(&padded).to_header(), b"GET /");
        assert_eq!(rebuilt, Ok(frame));
    }

    #[test]
    fn what_is_not_of_a_client() {
        let good = frame(7, 77, None, b"GET /");
        let with = |at: usize, byte: u8| {
            let mut frame = good.clone();
            frame[at] = byte;
            frame
        };
        for frame in [
            good[..good.len() - 1].to_vec(),
            good[..10].to_vec(),
            // A VLAN, another version, UDP, an authentication header, a fragment.
            with(12, 0x81),
            with(ETHERNET, 0x65),
            with(ETHERNET + 9, 17),
            with(ETHERNET + 9, 51),
            with(ETHERNET + 6, 0x20),
            with(ETHERNET + 7, 1),
        ] {
            assert_eq!(Segment::read(&frame), Err(BadFrame::NotTcp), "{frame:?}");
        }
    }

    #[test]
    fn urgent_data_ends_where_it_did() {
        let urgent = |pointer| TcpHeader {
            urg: true,
            urgent_pointer: pointer,
            ..TcpHeader::default()
        };
        for (before, bytes, after) in [
            (9, 4, (true, 5)),
            (9, 9, (false, 0)),
            (9, 12, (false, 0)),
            (9, 0, (true, 9)),
        ] {
            let mut header = urgent(before);
            advance(&mut header, bytes);
            assert_eq!((header.urg, header.urgent_pointer), after);
            assert_eq!(header.sequence_number, bytes as u32);
        }
    }
}
