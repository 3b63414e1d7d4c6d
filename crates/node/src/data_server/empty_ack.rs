//! An empty ACK in a client's name: the daemon sends it in for an idle connection, and inside messages about others.

use baton_abi::TcbKey;
use etherparse::PacketBuilder;

/// Makes a frame with an empty ACK in the client's name. It has room for timestamps, which only the owner knows. `None`
/// if the flow is not IPv4.
pub(crate) fn ack(flow: &TcbKey, (seq, ack): (u32, u32), mac: [u8; 6]) -> Option<Vec<u8>> {
    const TIMESTAMPS: [u8; 12] = [1; 12];
    const TTL: u8 = 64;
    let (client, cluster) = flow.ends();
    if client.ip().is_unspecified() {
        return None;
    }
    let builder = PacketBuilder::ethernet2(mac, mac)
        .ipv4(client.ip().octets(), cluster.ip().octets(), TTL)
        .tcp(client.port(), cluster.port(), seq, 0)
        .ack(ack)
        .options_raw(&TIMESTAMPS)
        .ok()?;
    let mut frame = Vec::with_capacity(builder.size(0));
    builder.write(&mut frame, &[]).ok()?;
    Some(frame)
}

#[cfg(test)]
mod tests {
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};

    use super::*;

    #[test]
    fn the_ack_is_empty_and_where_the_connection_is() {
        let (client, cluster) = ("192.0.2.7:40000", "10.77.0.100:80");
        let address = |text: &str| text.parse::<std::net::SocketAddrV4>().ok();
        let (Some(client), Some(cluster)) = (address(client), address(cluster)) else {
            panic!("two addresses")
        };
        let flow = TcbKey::of(client, cluster);
        let frame =
            ack(&flow, (4_000_000_000, 17), [2; 6]).unwrap_or_else(|| panic!("a flow of IPv4"));
        let Ok(SlicedPacket {
            net: Some(NetSlice::Ipv4(ip)),
            transport: Some(TransportSlice::Tcp(tcp)),
            ..
        }) = SlicedPacket::from_ethernet(&frame)
        else {
            panic!("no TCP: {frame:?}")
        };
        assert_eq!(ip.header().source_addr(), *client.ip());
        assert_eq!(ip.header().destination_addr(), *cluster.ip());
        assert_eq!((tcp.source_port(), tcp.destination_port()), (40000, 80));
        assert_eq!(tcp.sequence_number(), 4_000_000_000);
        assert_eq!(tcp.acknowledgment_number(), 17);
        assert!(tcp.ack() && !(tcp.syn() || tcp.fin() || tcp.rst() || tcp.psh()));
        assert!(tcp.payload().is_empty());
        assert_eq!(tcp.options(), [1; 12]);
    }
}
