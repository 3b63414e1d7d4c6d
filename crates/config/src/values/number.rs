//! Numbers whose types cannot hold a value out of range.

use std::fmt;
use std::ops::RangeInclusive;

use crate::reading::problem::Problem;

/// The IP protocol of messages between nodes. It is one that hosts use for nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol(u8);

impl Protocol {
    /// The default, a number that is reserved for experiments (RFC 3692).
    pub(crate) const EXPERIMENT: Self = Self(253);

    /// The number in the IP header.
    pub fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<i64> for Protocol {
    type Error = Problem;

    fn try_from(value: i64) -> Result<Self, Problem> {
        let number: u8 = in_range("protocol", value, 1..=254)?;
        match IN_USE.iter().find(|(taken, _)| *taken == number) {
            None => Ok(Self(number)),
            Some((_, name)) => Err(Problem::new(
                format!("protocol {number} is {name}, which hosts use"),
                "use 253 or 254, which are for experiments (RFC 3692)",
            )),
        }
    }
}

/// Protocols that a kernel or a common daemon would take for its own (IANA protocol numbers).
const IN_USE: &[(u8, &str)] = &[
    (1, "ICMP"),
    (2, "IGMP"),
    (4, "IP in IP"),
    (6, "TCP"),
    (17, "UDP"),
    (33, "DCCP"),
    (41, "IPv6 in IP"),
    (43, "an IPv6 extension header"),
    (44, "an IPv6 extension header"),
    (47, "GRE"),
    (50, "ESP"),
    (51, "AH"),
    (58, "ICMPv6"),
    (59, "an IPv6 extension header"),
    (60, "an IPv6 extension header"),
    (89, "OSPF"),
    (103, "PIM"),
    (112, "VRRP"),
    (115, "L2TP"),
    (132, "SCTP"),
    (136, "UDP-Lite"),
];

/// Converts `value` to the narrower type if it lies in `range`.
pub(crate) fn in_range<T>(key: &str, value: i64, range: RangeInclusive<i64>) -> Result<T, Problem>
where
    T: TryFrom<i64>,
{
    let wrong = || {
        Problem::new(
            format!("{key} = {value} is out of range"),
            format!("choose from {} to {}", range.start(), range.end()),
        )
    };
    if !range.contains(&value) {
        return Err(wrong());
    }
    T::try_from(value).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_in_use_are_refused() {
        assert_eq!(Protocol::try_from(253).map(Protocol::number), Ok(253));
        for (number, _) in IN_USE {
            assert!(Protocol::try_from(i64::from(*number)).is_err());
        }
        assert!(Protocol::try_from(0).is_err());
        assert!(Protocol::try_from(255).is_err());
        assert!(Protocol::try_from(i64::MAX).is_err());
    }
}
