//! The amounts and addresses in a lab file. Each has a type that cannot hold a wrong value.

use std::fmt;
use std::net::IpAddr;

use serde::Deserialize;

/// An address with the length of its network's prefix: "10.77.0.1/24".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct HostAddress {
    address: IpAddr,
    prefix: u8,
}

/// A rate in bits a second: "1gbit", "500mbit", "64kbit".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Rate(u64);

/// A probability, 0 to 1, that a packet is lost. It is rounded to millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "f64")]
pub struct Loss(u32);

/// A share of one CPU, from 0.01 to 1024: 0.5 is half a CPU, 2 is two CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Cpu(f64);

/// The bytes of the largest IP packet on a link: 1280 (the minimum of IPv6, RFC 8200) to 65535.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u32")]
pub struct Mtu(u32);

/// A TCP port, 1 to 65535.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "u16")]
pub struct Port(u16);

impl HostAddress {
    /// The address itself.
    pub fn ip(&self) -> IpAddr {
        self.address
    }

    /// Whether both addresses have the same prefix length and the same network.
    pub fn shares_network_with(&self, other: &HostAddress) -> bool {
        self.prefix == other.prefix && self.network() == other.network()
    }

    /// Whether the address is IPv6, and the address of its network: the prefix, then zeros.
    fn network(&self) -> (bool, u128) {
        match self.address {
            IpAddr::V4(v4) => {
                let host_bits = 32 - u32::from(self.prefix);
                let bits = u128::from(v4.to_bits());
                (false, bits >> host_bits << host_bits)
            }
            IpAddr::V6(v6) => {
                let host_bits = 128 - u32::from(self.prefix);
                let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
                (true, v6.to_bits() & mask)
            }
        }
    }

    fn is_broadcast(&self) -> bool {
        match self.address {
            IpAddr::V4(v4) if self.prefix < 31 => {
                let hosts = u32::MAX >> self.prefix;
                v4.to_bits() & hosts == hosts
            }
            _ => false,
        }
    }

    fn is_network_itself(&self) -> bool {
        let (bits, least) = match self.address {
            IpAddr::V4(v4) => (u128::from(v4.to_bits()), 31),
            IpAddr::V6(v6) => (v6.to_bits(), 127),
        };
        self.prefix < least && bits == self.network().1
    }
}

impl Rate {
    /// The rate in bits a second.
    pub fn bits(self) -> u64 {
        self.0
    }
}

impl Loss {
    /// The loss of every packet.
    pub(crate) const ALL: Loss = Loss(1_000_000);

    /// Makes a loss from a fraction, or gives an error text if it is not from 0 to 1.
    pub fn new(fraction: f64) -> Result<Loss, String> {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(format!(
                "a loss of {fraction} is not a fraction from 0 (none) to 1 (every packet); \
                 write 0.01 for one in a hundred"
            ));
        }
        // In range by the test above: at most 1,000,000.
        Ok(Loss((fraction * 1e6).round() as u32))
    }

    /// The packets lost in a million.
    pub fn per_million(self) -> u32 {
        self.0
    }
}

impl Cpu {
    /// The share of one CPU.
    pub fn share(self) -> f64 {
        self.0
    }
}

impl Mtu {
    /// The MTU in bytes.
    pub fn bytes(self) -> u32 {
        self.0
    }
}

impl Port {
    /// The default port of web servers.
    pub const HTTP: Port = Port(80);

    /// The port as a number.
    pub fn number(self) -> u16 {
        self.0
    }
}

impl TryFrom<String> for HostAddress {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("{text:?} {why}; write it as \"10.77.0.1/24\""));
        let Some((address, prefix)) = text.split_once('/') else {
            return wrong("has no prefix length");
        };
        let (Ok(address), Ok(prefix)) = (address.parse::<IpAddr>(), prefix.parse::<u8>()) else {
            return wrong("is not an address with a prefix length");
        };
        let longest = if address.is_ipv4() { 32 } else { 128 };
        if prefix == 0 || prefix > longest {
            return wrong(&format!("has a prefix length outside 1 to {longest}"));
        }
        let parsed = HostAddress { address, prefix };
        if address.is_loopback() || address.is_multicast() || address.is_unspecified() {
            return wrong("is not an address a host can have on a network");
        }
        if parsed.is_broadcast() || parsed.is_network_itself() {
            return wrong("is the network's own or its broadcast address, not a host's");
        }
        Ok(parsed)
    }
}

impl TryFrom<String> for Rate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is not a rate from 8kbit to 100gbit; write it as \"1gbit\" or \"500mbit\""
            )
        };
        let units = [
            ("kbit", 1_000),
            ("mbit", 1_000_000),
            ("gbit", 1_000_000_000_u64),
        ];
        units
            .iter()
            .find_map(|(unit, bits)| Some((text.strip_suffix(unit)?, bits)))
            .and_then(|(number, bits)| number.trim().parse::<u64>().ok()?.checked_mul(*bits))
            .filter(|rate| (8_000..=100_000_000_000).contains(rate))
            .map(Rate)
            .ok_or_else(wrong)
    }
}

impl TryFrom<f64> for Loss {
    type Error = String;

    fn try_from(fraction: f64) -> Result<Self, String> {
        Loss::new(fraction)
    }
}

impl TryFrom<f64> for Cpu {
    type Error = String;

    fn try_from(share: f64) -> Result<Self, String> {
        if !(0.01..=1024.0).contains(&share) {
            return Err(format!(
                "a cpu quota of {share} is not between 0.01 and 1024; write 0.5 for half of one cpu"
            ));
        }
        Ok(Cpu(share))
    }
}

impl TryFrom<u32> for Mtu {
    type Error = String;

    fn try_from(bytes: u32) -> Result<Self, String> {
        if !(1280..=65535).contains(&bytes) {
            return Err(format!(
                "an mtu of {bytes} is not between 1280 and 65535 bytes"
            ));
        }
        Ok(Mtu(bytes))
    }
}

impl TryFrom<u16> for Port {
    type Error = String;

    fn try_from(number: u16) -> Result<Self, String> {
        if number == 0 {
            return Err("port 0 is not a port one can connect to: write 1 to 65535".to_owned());
        }
        Ok(Port(number))
    }
}

impl fmt::Display for HostAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}
