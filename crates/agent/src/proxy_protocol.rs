//! The header of the PROXY protocol, which says at the beginning of a connection whose it is
//! (<https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt>, section 2).

use crate::client::Ends;

/// What version 2 begins with. No request of HTTP does.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2, a connection of somebody else (PROXY).
const VERSION_AND_COMMAND: u8 = 0x21;
/// TCP over IPv4.
const FAMILY_AND_PROTOCOL: u8 = 0x11;
/// The length of two addresses and two ports of IPv4.
const LENGTH: u16 = 12;

/// The header of version 1, a line of text.
pub(crate) fn version_1(ends: &Ends) -> Vec<u8> {
    let (client, cluster) = (ends.client, ends.cluster);
    format!(
        "PROXY TCP4 {} {} {} {}\r\n",
        client.ip(),
        cluster.ip(),
        client.port(),
        cluster.port()
    )
    .into_bytes()
}

/// The header of version 2, which is binary.
pub(crate) fn version_2(ends: &Ends) -> Vec<u8> {
    let (client, cluster) = (ends.client, ends.cluster);
    let mut header = SIGNATURE.to_vec();
    header.extend([VERSION_AND_COMMAND, FAMILY_AND_PROTOCOL]);
    header.extend(LENGTH.to_be_bytes());
    header.extend(client.ip().octets());
    header.extend(cluster.ip().octets());
    header.extend(client.port().to_be_bytes());
    header.extend(cluster.port().to_be_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> Ends {
        Ends {
            client: "203.0.113.7:56324".parse().unwrap(),
            cluster: "192.0.2.100:443".parse().unwrap(),
        }
    }

    #[test]
    fn version_1_is_a_line() {
        let line = b"PROXY TCP4 203.0.113.7 192.0.2.100 56324 443\r\n";
        assert_eq!(version_1(&ends()), line);
    }

    #[test]
    fn version_2_has_28_bytes() {
        let header = [
            0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54,
            0x0a, // signature
            0x21, 0x11, 0x00, 0x0c, // version and command, family and protocol, length
            203, 0, 113, 7, 192, 0, 2, 100, // addresses
            0xdc, 0x04, 0x01, 0xbb, // ports
        ];
        assert_eq!(version_2(&ends()), header);
    }
}
