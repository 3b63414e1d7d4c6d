//! Addresses of nodes and of the cluster. They are two types, so that one is never taken for the other.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use crate::reading::problem::Problem;

/// The address clients know. A unicast address that is neither loopback nor unspecified; IPv4 is
/// never written in its v4-mapped form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterAddress(IpAddr);

/// A node's own address, under the same conditions as a [`ClusterAddress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeAddress(IpAddr);

macro_rules! address {
    ($name:ident) => {
        impl $name {
            /// The address itself.
            pub fn ip(self) -> IpAddr {
                self.0
            }

            /// The address, if it is an IPv4 address.
            pub fn ipv4(self) -> Option<Ipv4Addr> {
                match self.0 {
                    IpAddr::V4(address) => Some(address),
                    IpAddr::V6(_) => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = Problem;

            fn from_str(text: &str) -> Result<Self, Problem> {
                unicast(text).map(Self)
            }
        }
    };
}

address!(ClusterAddress);
address!(NodeAddress);

fn unicast(text: &str) -> Result<IpAddr, Problem> {
    let shown = text.escape_debug();
    let address: IpAddr = text.parse().map_err(|_| {
        let remedy = match text.split_once(['/', ']']) {
            Some(_) => "write the address alone, without prefix length, brackets or port",
            None => "write an address like \"192.0.2.2\"; names are not looked up",
        };
        Problem::new(format!("\"{shown}\" is not an IP address"), remedy)
    })?;
    if let (IpAddr::V6(_), mapped @ IpAddr::V4(_)) = (address, address.to_canonical()) {
        return Err(Problem::new(
            format!("\"{shown}\" is an IPv4 address written as IPv6"),
            format!("write \"{mapped}\""),
        ));
    }
    let kind = match address {
        _ if address.is_unspecified() => "unspecified",
        _ if address.is_loopback() => "a loopback address",
        _ if address.is_multicast() => "a multicast address",
        IpAddr::V4(v4) if v4.is_broadcast() => "the broadcast address",
        _ => return Ok(address),
    };
    Err(Problem::new(
        format!("\"{shown}\" is {kind}, by which no other machine can reach this one"),
        "write a unicast address of the network",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unicast_only() {
        for good in ["192.0.2.2", "10.77.0.100", "fd77::100", "2001:db8::1"] {
            assert!(NodeAddress::from_str(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "cs1",
            "192.0.2.2/24",
            "[fd77::1]:80",
            "192.0.2",
            "0.0.0.0",
            "::",
            "127.0.0.1",
            "::1",
            "224.0.0.1",
            "ff02::1",
            "255.255.255.255",
            "::ffff:192.0.2.2",
        ] {
            assert!(NodeAddress::from_str(bad).is_err(), "{bad}");
        }
    }
}
