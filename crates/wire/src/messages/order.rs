//! ORDER: an operator wants something of a node, and gives the order at another node.

use baton_abi::{
    LCCP_ORDER_DRAIN, LCCP_ORDER_MIGRATE, LCCP_ORDER_TELL, LCCP_ORDER_UNDRAIN, LccpOrder,
};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::ShortAddress;

/// An order to a node. It is sent again until the receiver has shown that it is done, in its HELLO or by ACCOUNT, so
/// doing it twice must have the effect of doing it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The order's number. Only the highest number of one sender counts; a repeated order has the same number.
    pub number: u64,
    /// What is ordered.
    pub verb: Verb,
}

/// What a node can be ordered to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Take no new requests.
    Drain,
    /// Take new requests again.
    Undrain,
    /// Let this other connection server take over from the receiver.
    Migrate(ShortAddress),
    /// Say how the order with this number is getting on.
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

    /// Reads a body. Returns `None` if it is shorter than it says, or if this version does not know the verb. A name is
    /// ignored if the verb takes none.
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
    // The number of the verb. C keeps these enumerators in 16 bits.
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
