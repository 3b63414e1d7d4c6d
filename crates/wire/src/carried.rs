//! Checks the client's packet behind a message: is it complete, and does it belong to the flow that the header names?

use crate::{Address, Endpoint, Flow, Reject};

/// The packet at the start of `bytes`, without what a link layer may have padded it with.
///
/// It must be one whole TCP segment from the flow's client to the flow's cluster address. A
/// fragment has no ports in it and so belongs to no flow; neither does an IPv6 packet with
/// extension headers, which no TCP stack sends by itself.
pub(crate) fn packet(bytes: &[u8], flow: Flow) -> Result<&[u8], Reject> {
    let ip = match bytes.first().ok_or(Reject::Short)? >> 4 {
        4 => ipv4(bytes)?,
        6 => ipv6(bytes)?,
        _ => return Err(Reject::Mismatch),
    };
    let packet = bytes.get(..ip.length).ok_or(Reject::Short)?;
    let (ports, _) = packet
        .get(ip.header..)
        .and_then(<[u8]>::split_first_chunk::<TCP_HEADER_BYTES>)
        .ok_or(Reject::Mismatch)?;
    let from = Endpoint {
        address: ip.source,
        port: u16::from_be_bytes([ports[0], ports[1]]),
    };
    let to = Endpoint {
        address: ip.destination,
        port: u16::from_be_bytes([ports[2], ports[3]]),
    };
    if (from, to) != (flow.client(), flow.cluster()) {
        return Err(Reject::Mismatch);
    }
    Ok(packet)
}

const TCP: u8 = 6;
const TCP_HEADER_BYTES: usize = 20;
const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;
/// More fragments, or a fragment offset (RFC 791, 3.1). The other flag is "don't fragment".
const IPV4_FRAGMENT: u16 = 0x3fff;

struct Ip {
    source: Address,
    destination: Address,
    /// Bytes in front of the TCP header.
    header: usize,
    /// Bytes of the whole packet.
    length: usize,
}

fn ipv4(bytes: &[u8]) -> Result<Ip, Reject> {
    let (h, _) = bytes
        .split_first_chunk::<IPV4_HEADER_BYTES>()
        .ok_or(Reject::Short)?;
    let header = usize::from(h[0] & 0xf) * 4;
    let fragment = u16::from_be_bytes([h[6], h[7]]) & IPV4_FRAGMENT != 0;
    if header < IPV4_HEADER_BYTES || fragment || h[9] != TCP {
        return Err(Reject::Mismatch);
    }
    Ok(Ip {
        source: std::net::Ipv4Addr::new(h[12], h[13], h[14], h[15]).into(),
        destination: std::net::Ipv4Addr::new(h[16], h[17], h[18], h[19]).into(),
        header,
        length: usize::from(u16::from_be_bytes([h[2], h[3]])),
    })
}

fn ipv6(bytes: &[u8]) -> Result<Ip, Reject> {
    let (h, _) = bytes
        .split_first_chunk::<IPV6_HEADER_BYTES>()
        .ok_or(Reject::Short)?;
    if h[6] != TCP {
        return Err(Reject::Mismatch);
    }
    let mut addresses = [[0; 16]; 2];
    addresses.as_flattened_mut().copy_from_slice(&h[8..]);
    Ok(Ip {
        source: Address::from_octets(addresses[0]),
        destination: Address::from_octets(addresses[1]),
        header: IPV6_HEADER_BYTES,
        length: IPV6_HEADER_BYTES + usize::from(u16::from_be_bytes([h[4], h[5]])),
    })
}
