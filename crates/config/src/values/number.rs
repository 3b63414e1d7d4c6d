//! Numbers whose types cannot hold a value out of range.

use std::fmt;
use std::ops::RangeInclusive;

use crate::reading::problem::Problem;
use crate::reading::value::{Read, value};

/// The IP protocol of messages between nodes. It is one that hosts use for nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol(u8);

impl Protocol {
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

impl Protocol {
    /// Converts the number of a protocol that hosts use for nothing else.
    pub(crate) fn parse(key: &str, number: i64) -> Result<Self, Problem> {
        let number: u8 = in_range(key, number, &(1..=254u8))?;
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

/// The reader of a whole number that lies in `range`.
pub(crate) fn number<N, V>(range: RangeInclusive<N>) -> impl Read<V>
where
    N: TryFrom<i64> + PartialOrd + fmt::Display,
    V: TryFrom<N>,
{
    value(move |key, number| in_range(key, number, &range))
}

/// Converts the number to its own type if it lies in `range`.
pub(crate) fn in_range<N, V>(
    key: &str,
    number: i64,
    range: &RangeInclusive<N>,
) -> Result<V, Problem>
where
    N: TryFrom<i64> + PartialOrd + fmt::Display,
    V: TryFrom<N>,
{
    let found = N::try_from(number)
        .ok()
        .filter(|number| range.contains(number));
    found
        .and_then(|number| V::try_from(number).ok())
        .ok_or_else(|| {
            Problem::new(
                format!("{key} = {number} is out of range"),
                format!("choose from {} to {}", range.start(), range.end()),
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_in_use_are_refused() {
        let parse = |number| Protocol::parse("protocol", number);
        assert_eq!(parse(253).map(Protocol::number), Ok(253));
        for (number, _) in IN_USE {
            assert!(parse(i64::from(*number)).is_err());
        }
        assert!(parse(0).is_err());
        assert!(parse(255).is_err());
        assert!(parse(i64::MAX).is_err());
    }
}
