//! Makes frames that a client could have sent, from its stream.

use std::net::SocketAddrV4;

use etherparse::{PacketBuilder, TcpOptionElement};

/// How many bytes of a stream one frame may have if it may go on to another data server: it must fit with a message
/// around it.
pub const PIECE: usize = 1200;

/// What all frames with bytes of one stream have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The MAC address of the interface that they are to come in by. It is also their source address.
    pub mac: [u8; 6],
    /// The client's end of the connection.
    pub client: SocketAddrV4,
    /// The cluster address and port that the stream goes to.
    pub cluster: SocketAddrV4,
    /// Sequence number of the cluster's next byte. The client has all bytes before it.
    pub ack: u32,
    /// The client's window, as the header of its packets has it.
    pub window: u16,
    /// The client's timestamp and the one that it echoes, if its connection uses timestamps.
    pub stamps: Option<(u32, u32)>,
}

impl Stream {
    /// Frames with the bytes of the stream from `seq` on, at most `most` bytes in each. Each frame comes with the
    /// sequence number behind its bytes. `ends` says whether the client sends nothing after them.
    pub fn frames(&self, seq: u32, bytes: &[u8], most: usize, ends: bool) -> Vec<(u32, Vec<u8>)> {
        let pieces = bytes.chunks(most).count();
        let mut at = seq;
        let mut frames = Vec::with_capacity(pieces);
        for (index, piece) in bytes.chunks(most).enumerate() {
            let frame = self.frame(at, piece, ends && index + 1 == pieces);
            // The cast loses nothing, because a piece is short; sequence numbers wrap around.
            at = at.wrapping_add(piece.len() as u32);
            frames.push((at, frame));
        }
        frames
    }

    fn frame(&self, seq: u32, piece: &[u8], ends: bool) -> Vec<u8> {
        const TTL: u8 = 64;
        let (client, cluster) = (self.client.ip().octets(), self.cluster.ip().octets());
        let tcp = PacketBuilder::ethernet2(self.mac, self.mac)
            .ipv4(client, cluster, TTL)
            .tcp(self.client.port(), self.cluster.port(), seq, self.window)
            .ack(self.ack)
            .psh();
        let tcp = if ends { tcp.fin() } else { tcp };
        let noop = TcpOptionElement::Noop;
        let options = self
            .stamps
            .map(|(own, echo)| [noop.clone(), noop, TcpOptionElement::Timestamp(own, echo)]);
        let options = options.as_ref().map_or(&[][..], |options| options);
        let mut frame = Vec::new();
        // Twelve bytes of options are not too many, and a vector always has room.
        let written = tcp.options(options).map(|tcp| tcp.write(&mut frame, piece));
        debug_assert!(matches!(written, Ok(Ok(()))), "{written:?}");
        frame
    }
}

#[cfg(test)]
mod tests {
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};

    use super::super::stream;
    use super::*;

    const BEGIN: u32 = u32::MAX - 99;

    #[test]
    fn a_stream_in_frames() {
        let bytes: Vec<u8> = (0..250).collect();
        for (stamps, ends) in [(Some((1_000_000, 2_000_000)), false), (None, true)] {
            let stream = Stream { stamps, ..stream() };
            let frames = stream.frames(BEGIN, &bytes, 100, ends);
            assert_eq!(frames.len(), 3);
            for (index, (behind, frame)) in frames.iter().enumerate() {
                let come = bytes.len().min(100 * (index + 1));
                assert_eq!(*behind, BEGIN.wrapping_add(come as u32));
                let Ok(SlicedPacket {
                    net: Some(NetSlice::Ipv4(ip)),
                    transport: Some(TransportSlice::Tcp(tcp)),
                    ..
                }) = SlicedPacket::from_ethernet(frame)
                else {
                    panic!("no TCP: {frame:?}")
                };
                let header = ip.header().to_header();
                assert_eq!(header.header_checksum, header.calc_header_checksum());
                let checksum = tcp.to_header().calc_checksum_ipv4(&header, tcp.payload());
                assert_eq!(Ok(tcp.checksum()), checksum);
                assert_eq!(
                    tcp.sequence_number(),
                    BEGIN.wrapping_add(100 * index as u32)
                );
                assert_eq!(Some(tcp.payload()), bytes.chunks(100).nth(index));
                assert_eq!(tcp.fin(), ends && index == 2);
                assert_eq!((tcp.acknowledgment_number(), tcp.window_size()), (77, 501));
                let stamp = tcp
                    .options_iterator()
                    .flatten()
                    .find_map(|option| match option {
                        TcpOptionElement::Timestamp(own, echo) => Some((own, echo)),
                        _ => None,
                    });
                assert_eq!(stamp, stamps);
            }
        }
    }
}
