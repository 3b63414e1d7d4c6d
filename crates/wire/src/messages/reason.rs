//! Why a data server did not do what it was asked to do.

use baton_abi::{LCCP_REFUSAL_NO_LISTENER, LCCP_REFUSAL_NOT_ASSIGNED, LCCP_REFUSAL_UNREADABLE};

/// Why a DS did not adopt a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Nothing listens on the service's port.
    NoListener,
    /// The kernel would not make a socket from the packet.
    NotAssigned,
    /// The owner has to judge this request, and cannot read it.
    Unreadable,
    /// A reason that this version does not know. The CS treats all reasons alike.
    Other,
}

impl Refusal {
    /// Its number in a message (`enum lccp_refusal`).
    pub const fn number(self) -> u32 {
        match self {
            Self::NoListener => LCCP_REFUSAL_NO_LISTENER,
            Self::NotAssigned => LCCP_REFUSAL_NOT_ASSIGNED,
            Self::Unreadable => LCCP_REFUSAL_UNREADABLE,
            Self::Other => 0,
        }
    }

    pub(crate) const fn from_number(number: u32) -> Self {
        match number {
            LCCP_REFUSAL_NO_LISTENER => Self::NoListener,
            LCCP_REFUSAL_NOT_ASSIGNED => Self::NotAssigned,
            LCCP_REFUSAL_UNREADABLE => Self::Unreadable,
            _ => Self::Other,
        }
    }
}
