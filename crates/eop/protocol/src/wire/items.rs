//! The items of extension 1.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::{Error, Token};

mod kind {
    pub const ADDRESS6: u8 = 1;
    pub const TOKEN: u8 = 2;
    pub const ANSWERS: u8 = 3;
    pub const FELL_BACK_FROM: u8 = 4;
    pub const TAKEN: u8 = 5;
    /// Items of this kind and above are ignored if they are not known.
    pub const OPTIONAL: u8 = 128;
}

/// The values of all items. The parser knows which of them belong to an opcode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Items {
    pub address6: Option<Ipv6Addr>,
    pub token: Option<Token>,
    pub answers: bool,
    pub fell_back_from: Option<SocketAddr>,
    pub taken: Option<u64>,
}

impl Items {
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut put = |kind: u8, value: &[u8]| {
            // The longest value has 24 bytes.
            bytes.extend([kind, value.len() as u8]);
            bytes.extend(value);
        };
        if let Some(address) = self.address6 {
            put(kind::ADDRESS6, &address.octets());
        }
        if let Some(token) = self.token {
            put(kind::TOKEN, &token.bytes());
        }
        if self.answers {
            put(kind::ANSWERS, &[]);
        }
        if let Some(place) = self.fell_back_from {
            let address = match place.ip() {
                IpAddr::V4(address) => address.to_ipv6_mapped(),
                IpAddr::V6(address) => address,
            };
            let port = place.port().to_be_bytes();
            put(
                kind::FELL_BACK_FROM,
                &[&address.octets()[..], &port].concat(),
            );
        }
        if let Some(taken) = self.taken {
            put(kind::TAKEN, &taken.to_be_bytes());
        }
        bytes
    }

    pub fn read(mut bytes: &[u8]) -> Result<Self, Error> {
        let mut items = Self::default();
        while let [kind, length, rest @ ..] = bytes {
            let kind = *kind;
            let bad = Error::Item { kind };
            let (value, rest) = rest.split_at_checked((*length).into()).ok_or(bad)?;
            bytes = rest;
            let twice = match kind {
                kind::ADDRESS6 => {
                    let octets: [u8; 16] = value.try_into().map_err(|_| bad)?;
                    items.address6.replace(octets.into()).is_some()
                }
                kind::TOKEN => {
                    let token = Token::from_bytes(value.try_into().map_err(|_| bad)?);
                    items.token.replace(token).is_some()
                }
                kind::ANSWERS if value.is_empty() => std::mem::replace(&mut items.answers, true),
                kind::FELL_BACK_FROM => {
                    let place = place(value).ok_or(bad)?;
                    items.fell_back_from.replace(place).is_some()
                }
                kind::TAKEN => {
                    let taken = u64::from_be_bytes(value.try_into().map_err(|_| bad)?);
                    items.taken.replace(taken).is_some()
                }
                kind::OPTIONAL.. => false,
                _ => true,
            };
            if twice {
                return Err(bad);
            }
        }
        if bytes.is_empty() {
            Ok(items)
        } else {
            Err(Error::Item { kind: 0 })
        }
    }
}

fn place(value: &[u8]) -> Option<SocketAddr> {
    let (address, port) = value.split_first_chunk::<16>()?;
    let port = u16::from_be_bytes(port.try_into().ok()?);
    Some(SocketAddr::new(
        IpAddr::V6((*address).into()).to_canonical(),
        port,
    ))
}
