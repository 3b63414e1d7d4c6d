//! Gratuitous ARP (RFC 826, RFC 5227 section 3).

use std::net::Ipv4Addr;

use super::Frame;

const BROADCAST: [u8; 6] = [0xff; 6];
const ETHERTYPE_ARP: u16 = 0x0806;
const ETHERTYPE_IPV4: u16 = 0x0800;
const HARDWARE_ETHERNET: u16 = 1;
const REQUEST: u16 = 1;
const REPLY: u16 = 2;

/// The announcement as two broadcast frames: a request and a reply. RFC 5227 uses the request, which every host should
/// accept; some switches and hosts only heed the reply.
pub fn gratuitous(mac: [u8; 6], address: Ipv4Addr) -> [Frame; 2] {
    // The target MAC of a request is what the request asks for, so it stays empty (RFC 5227, section 1.1). In a reply
    // it must be the sender's: only then does Linux count the reply as gratuitous and let it replace an entry younger
    // than a second (`arp_is_garp` in net/ipv4/arp.c).
    [
        frame(REQUEST, mac, [0; 6], address),
        frame(REPLY, mac, mac, address),
    ]
}

/// A gratuitous ARP frame: its sender address and its target address are the same.
fn frame(operation: u16, mac: [u8; 6], target: [u8; 6], address: Ipv4Addr) -> Frame {
    let mut frame = Vec::with_capacity(42);
    frame.extend(BROADCAST);
    frame.extend(mac);
    frame.extend(ETHERTYPE_ARP.to_be_bytes());
    frame.extend(HARDWARE_ETHERNET.to_be_bytes());
    frame.extend(ETHERTYPE_IPV4.to_be_bytes());
    frame.extend([6, 4]); // bytes in a MAC address, in an IPv4 address
    frame.extend(operation.to_be_bytes());
    frame.extend(mac);
    frame.extend(address.octets());
    frame.extend(target);
    frame.extend(address.octets());
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_byte_for_byte() {
        let [request, reply] = gratuitous([2, 0, 0, 0, 0, 7], Ipv4Addr::new(10, 77, 0, 100));
        let expected = |operation, target: [u8; 6]| {
            let mut bytes = vec![0xff; 6];
            bytes.extend([2, 0, 0, 0, 0, 7, 0x08, 0x06]);
            bytes.extend([0, 1, 0x08, 0, 6, 4, 0, operation]);
            bytes.extend([2, 0, 0, 0, 0, 7, 10, 77, 0, 100]);
            bytes.extend(target);
            bytes.extend([10, 77, 0, 100]);
            bytes
        };
        assert_eq!(request, expected(1, [0; 6]));
        assert_eq!(reply, expected(2, [2, 0, 0, 0, 0, 7]));
    }
}
