//! ORDER: an operator wants something of a node, and says so at another one.

use baton_abi::{
    LCCP_ORDER_DRAIN, LCCP_ORDER_MIGRATE, LCCP_ORDER_TELL, LCCP_ORDER_UNDRAIN, LccpOrder,
};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::ShortAddress;

/// Do this. It is sent again until the receiver has shown that it is done, in its HELLO or by ACCOUNT, so
/// doing it twice must be doing it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Of the orders of one sender the highest counts; sent again it is the same.
    pub number: u64,
    /// What.
    pub verb: Verb,
}

/// What a node can be ordered to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// To take no new requests.
    Drain,
    /// To take them again.
    Undrain,
    /// To let this other connection server take over from it.
    Migrate(ShortAddress),
    /// To say how what this number ordered is getting on.
    Tell,
}

impl Order {
    pub(crate) fn body(&self) -> Vec<u8> {
        let order = LccpOrder {
            be_number: self.number.to_be(),
            be_verb: self.verb.number().to_be(),
            be_name_bytes: 0,
            other: self.verb.other(),
        };
        order.as_bytes().to_vec()
    }

    /// `None` if the body is shorter than it says, or wants what this version does not know. A name where
    /// the verb has none is ignored.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let (order, rest) = LccpOrder::read_from_prefix(body).ok()?;
        rest.get(..usize::from(u16::from_be(order.be_name_bytes)))?;
        Some(Self {
            number: u64::from_be(order.be_number),
            verb: Verb::read(u16::from_be(order.be_verb), order.other)?,
        })
    }
}

impl Verb {
    // Enumerators that C keeps in 16 bits.
    const fn number(self) -> u16 {
        match self {
            Self::Drain => LCCP_ORDER_DRAIN as u16,
            Self::Undrain => LCCP_ORDER_UNDRAIN as u16,
            Self::Migrate(_) => LCCP_ORDER_MIGRATE as u16,
            Self::Tell => LCCP_ORDER_TELL as u16,
        }
    }

    const fn other(self) -> u32 {
        match self {
            Self::Migrate(to) => to.word(),
            Self::Drain | Self::Undrain | Self::Tell => 0,
        }
    }

    fn read(number: u16, other: u32) -> Option<Self> {
        match u32::from(number) {
            LCCP_ORDER_DRAIN => Some(Self::Drain),
            LCCP_ORDER_UNDRAIN => Some(Self::Undrain),
            LCCP_ORDER_MIGRATE => ShortAddress::from_word(other).map(Self::Migrate),
            LCCP_ORDER_TELL => Some(Self::Tell),
            _ => None,
        }
    }
}
