//! Reads the part of a client's stream that a frame carries.

use std::net::SocketAddrV4;

use baton_abi::TcbKey;
use etherparse::{IpNumber, Ipv4Slice, TcpSlice};

/// The length of the Ethernet header in front of IP.
pub const ETHERNET: usize = 14;
/// The last two bytes of that header: the type of IPv4.
const IPV4: [u8; 2] = [8, 0];

/// The frame is not TCP over IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the frame is not a whole packet of TCP over IPv4")]
pub struct NotTcp;

/// A part of a client's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The key of its connection in the maps.
    pub key: TcbKey,
    /// Sequence number of the first byte of the payload.
    pub seq: u32,
    /// The bytes of the stream.
    pub payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Reads a frame.
    ///
    /// # Errors
    /// [`NotTcp`] if the frame is not TCP over IPv4.
    pub fn read(frame: &'a [u8]) -> Result<Self, NotTcp> {
        let (ethernet, packet) = frame.split_at_checked(ETHERNET).ok_or(NotTcp)?;
        if !ethernet.ends_with(&IPV4) {
            return Err(NotTcp);
        }
        let ip = Ipv4Slice::from_slice(packet).map_err(|_| NotTcp)?;
        if ip.is_payload_fragmented() || ip.header().protocol() != IpNumber::TCP {
            return Err(NotTcp);
        }
        let tcp = TcpSlice::from_slice(ip.payload().payload).map_err(|_| NotTcp)?;
        let client = SocketAddrV4::new(ip.header().source_addr(), tcp.source_port());
        let cluster = SocketAddrV4::new(ip.header().destination_addr(), tcp.destination_port());
        Ok(Self {
            key: TcbKey::of(client, cluster),
            seq: tcp.sequence_number(),
            payload: &tcp.slice()[tcp.header_len()..],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream;
    use super::*;

    fn frame() -> Vec<u8> {
        stream().frames(7, b"GET /", 100, false).swap_remove(0).1
    }

    #[test]
    fn what_a_frame_carries() {
        let frame = frame();
        let segment = Segment::read(&frame).unwrap();
        assert_eq!((segment.seq, segment.payload), (7, &b"GET /"[..]));
        let client = SocketAddrV4::new([198, 51, 100, 7].into(), 40_000);
        let cluster = SocketAddrV4::new([10, 77, 0, 100].into(), 80);
        assert_eq!(segment.key, TcbKey::of(client, cluster));
        // Ethernet pads short frames.
        let padded = [&frame[..], &[0; 6]].concat();
        assert_eq!(Segment::read(&padded), Ok(segment));
    }

    #[test]
    fn what_is_not_of_a_client() {
        let good = frame();
        let with = |at: usize, byte: u8| {
            let mut frame = good.clone();
            frame[at] = byte;
            frame
        };
        for frame in [
            good[..good.len() - 1].to_vec(),
            good[..10].to_vec(),
            // A VLAN tag, another IP version, UDP, an authentication header, and a fragment.
            with(12, 0x81),
            with(ETHERNET, 0x65),
            with(ETHERNET + 9, 17),
            with(ETHERNET + 9, 51),
            with(ETHERNET + 6, 0x20),
        ] {
            assert_eq!(Segment::read(&frame), Err(NotTcp));
        }
    }
}
