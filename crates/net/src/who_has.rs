//! Asks a LAN who answers for an address, without claiming it: the ARP probe of RFC 5227.

use std::io::{self, Read as _};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use etherparse::{
    ArpEthIpv4Packet, ArpOperation, EtherType, NetSlice, PacketBuilder, SlicedPacket,
};
use socket2::{Domain, Protocol, Socket, Type};

use crate::packet_socket::PacketSocket;
use crate::{Error, Link, Result};

/// The MAC addresses, each once, that answer for `address` on the LAN of `link` within `patience`. This host's own
/// answer is not among them, because it does not hear its own question. This call blocks.
///
/// # Errors
/// [`Error::System`] without CAP_NET_RAW, or if the link is down.
pub fn who_has(link: &Link, address: Ipv4Addr, patience: Duration) -> Result<Vec<[u8; 6]>> {
    let doing = || format!("ask who has {address} on {}", link.name);
    let answers = ears().map_err(Error::system(doing()))?;
    PacketSocket::open(link)?.send(&probe(link.mac, address))?;
    let deadline = Instant::now() + patience;
    let mut found = Vec::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(found);
        }
        match hear(&answers, left) {
            Ok(frame) => {
                let answer = answer(&frame, link.mac, address);
                found.extend(answer.filter(|mac| !found.contains(mac)));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(found),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::system(doing())(error)),
        }
    }
}

/// A socket for all ARP frames on every interface. The target of a frame shows by which interface it came.
fn ears() -> io::Result<Socket> {
    let arp = Protocol::from(i32::from(EtherType::ARP.0.to_be()));
    Socket::new(Domain::PACKET, Type::RAW, Some(arp))
}

fn hear(socket: &Socket, patience: Duration) -> io::Result<Vec<u8>> {
    // A timeout of zero would mean no timeout.
    socket.set_read_timeout(Some(patience.max(Duration::from_millis(1))))?;
    let mut frame = vec![0; 2048];
    let mut socket: &Socket = socket;
    let length = socket.read(&mut frame)?;
    frame.truncate(length);
    Ok(frame)
}

/// The probe. Its sender address is all zero, so that no host learns an entry from it (RFC 5227, 2.1.1).
fn probe(mac: [u8; 6], address: Ipv4Addr) -> Vec<u8> {
    let question = ArpEthIpv4Packet {
        operation: ArpOperation::REQUEST,
        sender_mac: mac,
        sender_ipv4: [0; 4],
        target_mac: [0; 6],
        target_ipv4: address.octets(),
    };
    let builder = PacketBuilder::ethernet2(mac, [0xff; 6]).arp(question.into());
    let mut frame = Vec::with_capacity(builder.size());
    // Writing to a vector cannot fail; an empty frame would be refused when sent.
    let _ = builder.write(&mut frame);
    frame
}

/// The MAC address in a frame that answers us and claims the address.
fn answer(frame: &[u8], own: [u8; 6], address: Ipv4Addr) -> Option<[u8; 6]> {
    let Some(NetSlice::Arp(arp)) = SlicedPacket::from_ethernet(frame).ok()?.net else {
        return None;
    };
    let arp = arp.to_packet().try_eth_ipv4().ok()?;
    let right = arp.operation == ArpOperation::REPLY
        && arp.target_mac == own
        && arp.sender_ipv4 == address.octets();
    right.then_some(arp.sender_mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 2];
    const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 100);

    fn reply(sender: Ipv4Addr, target: [u8; 6], operation: ArpOperation) -> Vec<u8> {
        let arp = ArpEthIpv4Packet {
            operation,
            sender_mac: OTHER,
            sender_ipv4: sender.octets(),
            target_mac: target,
            target_ipv4: [0; 4],
        };
        let mut frame = Vec::new();
        PacketBuilder::ethernet2(OTHER, target)
            .arp(arp.into())
            .write(&mut frame)
            .unwrap();
        frame
    }

    #[test]
    fn a_probe_tells_nothing() {
        let mut expected = vec![0xff; 6];
        expected.extend(OWN);
        expected.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
        expected.extend(OWN);
        expected.extend([0; 10]);
        expected.extend(ADDRESS.octets());
        assert_eq!(probe(OWN, ADDRESS), expected);
    }

    #[test]
    fn only_replies_to_us_about_the_address() {
        let good = reply(ADDRESS, OWN, ArpOperation::REPLY);
        assert_eq!(answer(&good, OWN, ADDRESS), Some(OTHER));
        for bad in [
            reply(Ipv4Addr::LOCALHOST, OWN, ArpOperation::REPLY),
            reply(ADDRESS, OTHER, ArpOperation::REPLY),
            reply(ADDRESS, OWN, ArpOperation::REQUEST),
            good[..20].to_vec(),
            Vec::new(),
        ] {
            assert_eq!(answer(&bad, OWN, ADDRESS), None);
        }
    }
}
