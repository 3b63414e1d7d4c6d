//! Acknowledges a part of a head to its client, which sends no more before it hears that this has come.

use anyhow::{Context as _, Result};
use baton_dataplane::Punt;
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TcpOptionElement, TransportSlice};

/// Few segments' worth, whatever the scale is: a head is short.
const WINDOW: u16 = 8192;
const TTL: u8 = 64;

/// The frame that tells the sender of this one that all up to `next` has come. It carries no data, and the service's own
/// timestamp that the client has seen last.
pub fn acknowledge(punt: &Punt, next: u32) -> Result<Vec<u8>> {
    let sliced = SlicedPacket::from_ethernet(&punt.frame)?;
    let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) = (sliced.net, sliced.transport)
    else {
        anyhow::bail!("a frame that is none of a client");
    };
    let addresses = punt.frame.first_chunk::<12>().context("a short frame")?;
    let [to, from] = [&addresses[..6], &addresses[6..]].map(|mac| {
        let mut address = [0; 6];
        address.copy_from_slice(mac);
        address
    });
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
        .options(stamps.as_slice())?;
    let mut frame = Vec::with_capacity(builder.size(0));
    builder.write(&mut frame, &[])?;
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(options: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
            .ipv4([198, 51, 100, 7], [10, 77, 0, 100], 63)
            .tcp(40_000, 80, 0xffff_fffe, 501)
            .ack(77)
            .psh()
            .options_raw(options)
            .expect("options of TCP")
            .write(&mut frame, b"GET")
            .expect("it is written to memory");
        let punt = Punt {
            interface: 3,
            service: 1,
            key: None,
            divide_at: None,
            is_behind: false,
            is_repeat: false,
            frame,
        };
        acknowledge(&punt, 1).expect("a packet of a client")
    }

    #[test]
    fn it_goes_back_where_the_packet_came_from() {
        let frame = answer(&[1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 7]);
        let sliced = SlicedPacket::from_ethernet(&frame).expect("a whole packet");
        let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) =
            (sliced.net, sliced.transport)
        else {
            panic!("{frame:?}");
        };
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
        let checksum = tcp
            .to_header()
            .calc_checksum_ipv4(&header.to_header(), &[])
            .ok();
        assert_eq!(Some(tcp.checksum()), checksum);
    }

    #[test]
    fn without_timestamps_it_has_none() {
        assert_eq!(answer(&[]).len(), 14 + 20 + 20);
    }
}
