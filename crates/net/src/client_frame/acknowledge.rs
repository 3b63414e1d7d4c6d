//! Acknowledges a part of a head to its client, which sends no more before it hears that this has come.

use etherparse::{PacketBuilder, TcpOptionElement};

use super::{BadFrame, Layers};

/// Few segments' worth, whatever the scale is: a head is short.
const WINDOW: u16 = 8192;
const TTL: u8 = 64;

/// The frame that tells the sender of this one that all up to `next` has come. It carries no data, and the service's own
/// timestamp that the client has seen last.
///
/// # Errors
/// It is not of TCP over IPv4.
pub fn acknowledge(frame: &[u8], next: u32) -> Result<Vec<u8>, BadFrame> {
    let Layers { ip, tcp } = Layers::of(frame)?;
    let address = |at| frame.get(at..)?.first_chunk().copied();
    let (Some(to), Some(from)) = (address(0), address(6)) else {
        return Err(BadFrame::NotTcp);
    };
    let stamps = tcp
        .options_iterator()
        .find_map(|option| match option {
            Ok(TcpOptionElement::Timestamp(theirs, ours)) => Some((ours, theirs)),
            _ => None,
        })
        .map(|(ours, theirs)| TcpOptionElement::Timestamp(ours, theirs));
    let ip = ip.header();
    let builder = PacketBuilder::ethernet2(to, from)
        .ipv4(ip.destination(), ip.source(), TTL)
        .tcp(
            tcp.destination_port(),
            tcp.source_port(),
            tcp.acknowledgment_number(),
            WINDOW,
        )
        .ack(next)
        .options(stamps.as_slice())
        .map_err(|_| BadFrame::TooLong)?;
    let mut answer = Vec::with_capacity(builder.size(0));
    builder
        .write(&mut answer, &[])
        .map_err(|_| BadFrame::TooLong)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_frame::tests::{frame_with, is_whole};

    fn answer(options: &[u8]) -> Vec<u8> {
        acknowledge(&frame_with(0xffff_fffe, 77, options, b"GET"), 1).unwrap()
    }

    #[test]
    fn it_goes_back_where_the_packet_came_from() {
        let frame = answer(&[1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 7]);
        is_whole(&frame);
        let Layers { ip, tcp } = Layers::of(&frame).unwrap();
        assert_eq!(frame[..12], [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
        let header = ip.header();
        assert_eq!(
            (header.source(), header.destination()),
            ([10, 77, 0, 100], [198, 51, 100, 7])
        );
        assert_eq!((tcp.source_port(), tcp.destination_port()), (80, 40_000));
        assert_eq!(
            (tcp.sequence_number(), tcp.acknowledgment_number()),
            (77, 1)
        );
        assert!(tcp.ack() && !tcp.psh() && tcp.payload().is_empty());
        let stamps: Vec<_> = tcp.options_iterator().flatten().collect();
        assert!(stamps.contains(&TcpOptionElement::Timestamp(7, 9)));
    }

    #[test]
    fn without_timestamps_it_has_none() {
        assert_eq!(answer(&[]).len(), 14 + 20 + 20);
    }
}
