//! Addresses in the places that have only 32 bits for them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use crate::{Address, Error};

/// An address of a node or of the cluster in 4 bytes, enough to tell the few addresses of one cluster apart. It is an
/// IPv4 address as it is, or the four words of an IPv6 address XORed.
///
/// It is never zero: a zero in a message means that there is no address, which is `None` here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShortAddress([u8; 4]);

impl ShortAddress {
    /// The 4 bytes as they are in a packet.
    pub const fn octets(self) -> [u8; 4] {
        self.0
    }

    /// The word that `be_data` of a message and the keys of maps hold.
    pub const fn word(self) -> u32 {
        u32::from_ne_bytes(self.0)
    }

    /// The short address in `be_data` or in the key of a map; `None`: there is none.
    pub const fn from_word(word: u32) -> Option<Self> {
        match word {
            0 => None,
            _ => Some(Self(word.to_ne_bytes())),
        }
    }
}

impl TryFrom<IpAddr> for ShortAddress {
    type Error = Error;

    /// # Errors
    /// [`Error::NoShortAddress`] if it would be zero.
    fn try_from(address: IpAddr) -> Result<Self, Error> {
        // A v4-mapped address counts as an IPv4 address here too.
        let octets = match Address::from(address).ip() {
            IpAddr::V4(v4) => v4.octets(),
            IpAddr::V6(v6) => {
                let octets = v6.octets();
                let (words, _) = octets.as_chunks();
                words.iter().fold([0; 4], xor)
            }
        };
        Self::from_word(u32::from_ne_bytes(octets)).ok_or(Error::NoShortAddress { address })
    }
}

fn xor(one: [u8; 4], other: &[u8; 4]) -> [u8; 4] {
    (u32::from_ne_bytes(one) ^ u32::from_ne_bytes(*other)).to_ne_bytes()
}

impl fmt::Display for ShortAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv4Addr::from(self.0).fmt(f)
    }
}

impl fmt::Debug for ShortAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(text: &str) -> Result<ShortAddress, Error> {
        ShortAddress::try_from(text.parse::<IpAddr>().unwrap())
    }

    #[test]
    fn ipv4_is_as_in_the_packet() {
        let address = short("192.0.2.11").unwrap();
        assert_eq!(address.octets(), [192, 0, 2, 11]);
        assert_eq!(address.word().to_ne_bytes(), [192, 0, 2, 11]);
        assert_eq!(short("::ffff:192.0.2.11"), Ok(address));
        assert_eq!(address.to_string(), "192.0.2.11");
    }

    #[test]
    fn ipv6_is_its_words_xored() {
        let address = short("0102:0304:1020:3040:ff00:00ff:0000:0100").unwrap();
        assert_eq!(
            address.octets(),
            [
                0x01 ^ 0x10 ^ 0xff,
                0x02 ^ 0x20,
                0x03 ^ 0x30 ^ 0x01,
                0x04 ^ 0x40 ^ 0xff
            ]
        );
        assert_eq!(short("fd77::100").unwrap().octets(), [0xfd, 0x77, 1, 0]);
    }

    #[test]
    fn nobody_has_none() {
        for address in ["0.0.0.0", "::", "fd77:1::fd77:1"] {
            let error = short(address).unwrap_err();
            assert!(error.to_string().contains(address), "{error}");
        }
        assert_eq!(ShortAddress::from_word(0), None);
    }
}
