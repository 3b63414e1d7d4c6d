//! YIELD's answer: where a connection is whose response was to go on at another data server.

use baton_abi::{LCCP_YIELD_GONE, LCCP_YIELD_KEPT, LCCP_YIELD_REFUSED};

/// What the owner says once the outcome is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum YieldAnswer {
    /// The connection is not here (anymore).
    Gone,
    /// The connection is here and stays, as was ordered.
    Kept,
    /// The connection is here and cannot leave.
    Refused,
}

impl YieldAnswer {
    /// Its number in a message (`enum lccp_yield`).
    pub const fn number(self) -> u32 {
        match self {
            Self::Gone => LCCP_YIELD_GONE,
            Self::Kept => LCCP_YIELD_KEPT,
            Self::Refused => LCCP_YIELD_REFUSED,
        }
    }

    /// The answer with this number.
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            LCCP_YIELD_GONE => Some(Self::Gone),
            LCCP_YIELD_KEPT => Some(Self::Kept),
            LCCP_YIELD_REFUSED => Some(Self::Refused),
            _ => None,
        }
    }
}
