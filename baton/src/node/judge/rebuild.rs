//! A client's packet, changed as its client could have sent it.

use anyhow::{Context as _, Result};
use baton_dataplane::Punt;
use etherparse::{NetSlice, SlicedPacket, TcpHeader, TcpSlice, TransportSlice};

const ETHERNET: usize = 14;

/// What a frame that the program has punted holds behind IP.
pub fn tcp(punt: &Punt) -> Result<TcpSlice<'_>> {
    let sliced = SlicedPacket::from_ethernet(&punt.frame)?;
    match (sliced.net, sliced.transport) {
        (Some(NetSlice::Ipv4(_)), Some(TransportSlice::Tcp(tcp))) => Ok(tcp),
        _ => anyhow::bail!("a frame that is none of a client"),
    }
}

/// The same packet with another header of TCP, of the same length, and this payload. Both checksums are whole.
pub fn rebuild(punt: &Punt, mut tcp: TcpHeader, payload: &[u8]) -> Result<Punt> {
    let sliced = SlicedPacket::from_ethernet(&punt.frame)?;
    let Some(NetSlice::Ipv4(ip)) = sliced.net else {
        anyhow::bail!("a frame that is none of a client");
    };
    let mut ip = ip.header().to_header();
    ip.set_payload_len(tcp.header_len() + payload.len())
        .context("a part is longer than the whole")?;
    ip.header_checksum = ip.calc_header_checksum();
    tcp.checksum = tcp.calc_checksum_ipv4(&ip, payload)?;
    let mut frame = punt.frame[..punt.frame.len().min(ETHERNET)].to_vec();
    ip.write_raw(&mut frame)?;
    tcp.write(&mut frame)?;
    frame.extend(payload);
    Ok(Punt {
        divide_at: None,
        is_behind: false,
        is_repeat: false,
        frame,
        ..punt.clone()
    })
}

/// Packets of a client, for tests.
#[cfg(test)]
pub mod tests {
    use baton_dataplane::Punt;
    use etherparse::{Ipv4HeaderSlice, PacketBuilder, SlicedPacket};

    /// With timestamps, if any: the client's, and the one that it echoes.
    pub fn punt(seq: u32, ack: u32, stamps: Option<(u8, u8)>, payload: &[u8]) -> Punt {
        let mut frame = Vec::new();
        let options = stamps.map(|(theirs, ours)| [1, 1, 8, 10, 0, 0, 0, theirs, 0, 0, 0, ours]);
        PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
            .ipv4([198, 51, 100, 7], [10, 77, 0, 100], 63)
            .tcp(40_000, 80, seq, 501)
            .ack(ack)
            .psh()
            .fin()
            .options_raw(options.as_ref().map_or(&[], |options| options))
            .expect("options of TCP")
            .write(&mut frame, payload)
            .expect("it is written to memory");
        Punt {
            interface: 3,
            service: 1,
            key: None,
            divide_at: None,
            is_behind: false,
            is_repeat: false,
            frame,
        }
    }

    /// Both checksums are right.
    pub fn is_whole(punt: &Punt) {
        let tcp = super::tcp(punt).expect("a client's packet");
        let sliced = SlicedPacket::from_ethernet(&punt.frame).expect("a whole packet");
        assert!(sliced.payload_ether_type().is_none());
        let header = Ipv4HeaderSlice::from_slice(&punt.frame[super::ETHERNET..])
            .expect("a whole packet")
            .to_header();
        assert_eq!(header.header_checksum, header.calc_header_checksum());
        let checksum = tcp.to_header().calc_checksum_ipv4(&header, tcp.payload());
        assert_eq!(Ok(tcp.checksum()), checksum);
    }
}
