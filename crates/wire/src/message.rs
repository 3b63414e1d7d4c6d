//! What nodes say to each other.

use baton_abi::{
    LCCP_RECEPTOR_CS, LCCP_RECEPTOR_DAEMON, LCCP_RECEPTOR_DS, LCCP_REFUSAL_NO_LISTENER,
    LCCP_REFUSAL_NOT_ASSIGNED,
};

use crate::{Flow, Hello, TcbPart};

/// One LCCP message. Its command and its [`Receptor`] follow from the variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// DM1, CS to DS: adopt this connection. Carries the client's packet.
    Adopt {
        /// Which connection.
        flow: Flow,
        /// With which TCP parameters.
        tcb: TcbPart,
    },
    /// DS to CS: no socket could be made here, try another. Carries the client's packet back.
    Refused {
        /// Which connection.
        flow: Flow,
        /// As it came in the ADOPT.
        tcb: TcbPart,
        /// Why.
        refusal: Refusal,
    },
    /// CS to DS: a packet of a client for its owner behind a router. Carries that packet.
    Forward {
        /// Which connection.
        flow: Flow,
    },
    /// Daemon to daemon: heartbeat, load and health.
    Hello(Hello),
}

impl Message {
    /// Which component of the receiving node this message is for.
    pub const fn receptor(&self) -> Receptor {
        match self {
            Self::Adopt { .. } | Self::Forward { .. } => Receptor::Ds,
            Self::Refused { .. } => Receptor::Cs,
            Self::Hello(_) => Receptor::Daemon,
        }
    }

    /// The flow whose packet follows this message; `None` if none follows.
    pub const fn carries(&self) -> Option<Flow> {
        match self {
            Self::Adopt { flow, .. } | Self::Refused { flow, .. } | Self::Forward { flow } => {
                Some(*flow)
            }
            Self::Hello(_) => None,
        }
    }
}

/// A component of a node that takes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Receptor {
    /// The CS program.
    Cs,
    /// The DS program.
    Ds,
    /// The daemon.
    Daemon,
}

impl Receptor {
    /// Its number in a message (`enum lccp_receptor`).
    pub const fn number(self) -> u32 {
        match self {
            Self::Cs => LCCP_RECEPTOR_CS,
            Self::Ds => LCCP_RECEPTOR_DS,
            Self::Daemon => LCCP_RECEPTOR_DAEMON,
        }
    }
}

/// Why a DS did not adopt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Nothing listens on the service's port.
    NoListener,
    /// The kernel would not make a socket of it.
    NotAssigned,
    /// A reason that this version does not know. The CS does the same for all of them.
    Other,
}

impl Refusal {
    /// Its number in a message (`enum lccp_refusal`).
    pub const fn number(self) -> u32 {
        match self {
            Self::NoListener => LCCP_REFUSAL_NO_LISTENER,
            Self::NotAssigned => LCCP_REFUSAL_NOT_ASSIGNED,
            Self::Other => 0,
        }
    }

    pub(crate) const fn from_number(number: u32) -> Self {
        match number {
            LCCP_REFUSAL_NO_LISTENER => Self::NoListener,
            LCCP_REFUSAL_NOT_ASSIGNED => Self::NotAssigned,
            _ => Self::Other,
        }
    }
}
