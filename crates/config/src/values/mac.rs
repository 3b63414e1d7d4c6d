//! MAC addresses.

use std::fmt;
use std::str::FromStr;

use crate::reading::problem::Problem;

/// The MAC address of one station, neither a group's nor all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MacAddress([u8; 6]);

impl MacAddress {
    /// The six octets in the order in which a frame has them.
    pub fn octets(self) -> [u8; 6] {
        self.0
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let octets = self.0.map(|octet| format!("{octet:02x}"));
        f.write_str(&octets.join(":"))
    }
}

impl FromStr for MacAddress {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let octets = octets(text).ok_or_else(|| {
            Problem::new(
                format!("\"{}\" is not a MAC address", text.escape_debug()),
                "write six octets, as in \"00:00:5e:00:01:0a\"",
            )
        })?;
        if octets[0] & 1 != 0 || octets == [0; 6] {
            return Err(Problem::new(
                format!("{text} is not the MAC address of one station"),
                "name one whose first octet is even, and not all zero",
            ));
        }
        Ok(Self(octets))
    }
}

fn octets(text: &str) -> Option<[u8; 6]> {
    let digits = |octet: &str| octet.len() == 2 && octet.bytes().all(|b| b.is_ascii_hexdigit());
    let octets: Option<Vec<u8>> = text
        .split(':')
        .map(|octet| u8::from_str_radix(octet, 16).ok().filter(|_| digits(octet)))
        .collect();
    octets?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_octets() {
        let mac: MacAddress = "00:00:5E:00:01:0a".parse().unwrap();
        assert_eq!(mac.octets(), [0, 0, 0x5e, 0, 1, 10]);
        assert_eq!(mac.to_string(), "00:00:5e:00:01:0a");
        for bad in [
            "",
            "00:00:5e:00:01",
            "00:00:5e:00:01:0a:0b",
            "0:0:5e:0:1:a",
            "00-00-5e-00-01-0a",
            "00:00:5e:00:01:+a",
            "00:00:5e:00:01:0g",
        ] {
            assert!(MacAddress::from_str(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn of_one_station() {
        for bad in [
            "01:00:5e:00:00:12",
            "ff:ff:ff:ff:ff:ff",
            "00:00:00:00:00:00",
        ] {
            assert!(MacAddress::from_str(bad).is_err(), "{bad}");
        }
    }
}
