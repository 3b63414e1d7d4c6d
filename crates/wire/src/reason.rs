//! Why a data server did not do what it was asked to.

use baton_abi::{
    LCCP_KEEP_BEGINS, LCCP_KEEP_BUSY, LCCP_KEEP_COME, LCCP_KEEP_MISSING, LCCP_KEEP_MORE,
    LCCP_KEEP_NO_WAY, LCCP_KEEP_SEQUENCE, LCCP_KEEP_STATE, LCCP_KEEP_TUNNEL, LCCP_KEEP_UNFINISHED,
    LCCP_KEEP_UNKNOWN, LCCP_KEEP_UNREAD, LCCP_KEEP_UNSENT, LCCP_REFUSAL_NO_LISTENER,
    LCCP_REFUSAL_NO_WAY, LCCP_REFUSAL_NOT_ASSIGNED, LCCP_REFUSAL_UNREADABLE,
};

/// Why a DS did not adopt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Nothing listens on the service's port.
    NoListener,
    /// The kernel would not make a socket of it.
    NotAssigned,
    /// Of a HANDOVER: the owner has let go, but knows no way to the next DS.
    NoWay,
    /// The owner is to judge this request, and cannot.
    Unreadable,
    /// A reason that this version does not know. The CS does the same for all of them.
    Other,
}

impl Refusal {
    /// Its number in a message (`enum lccp_refusal`).
    pub const fn number(self) -> u32 {
        match self {
            Self::NoListener => LCCP_REFUSAL_NO_LISTENER,
            Self::NotAssigned => LCCP_REFUSAL_NOT_ASSIGNED,
            Self::NoWay => LCCP_REFUSAL_NO_WAY,
            Self::Unreadable => LCCP_REFUSAL_UNREADABLE,
            Self::Other => 0,
        }
    }

    pub(crate) const fn from_number(number: u32) -> Self {
        match number {
            LCCP_REFUSAL_NO_LISTENER => Self::NoListener,
            LCCP_REFUSAL_NOT_ASSIGNED => Self::NotAssigned,
            LCCP_REFUSAL_NO_WAY => Self::NoWay,
            LCCP_REFUSAL_UNREADABLE => Self::Unreadable,
            _ => Self::Other,
        }
    }
}

/// Why an owner did not hand a connection over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keep {
    /// The connection is being closed.
    State,
    /// The client has not acknowledged all of the response.
    Unsent,
    /// The server has not read all of the requests before.
    Unread,
    /// The request does not begin at the next byte: it was sent again, or one before is missing.
    Sequence,
    /// The owner knows no way to the next DS.
    NoWay,
    /// Of a RELEASE: it is not idle.
    Busy,
    /// The response before is not known to be complete.
    Unfinished,
    /// Nor will it ever be: the responses on this connection cannot be followed.
    Unknown,
    /// Of a BEGINS: a request does begin there, and was not delivered.
    Begins,
    /// Of a BEGINS: more of what came before, at the next byte. It was delivered.
    More,
    /// Of a BEGINS about what came again: not all of it is there, and it was not delivered.
    Missing,
    /// Of BEGINS with `BEGINS_COME`, which is never delivered: so much has come.
    Come,
    /// Of a BEGINS: the server has switched to another protocol.
    Tunnel,
    /// A reason that this version does not know. The CS does the same for all of them.
    Other,
}

impl Keep {
    /// Its number in a message (`enum lccp_keep`).
    pub const fn number(self) -> u32 {
        match self {
            Self::State => LCCP_KEEP_STATE,
            Self::Unsent => LCCP_KEEP_UNSENT,
            Self::Unread => LCCP_KEEP_UNREAD,
            Self::Sequence => LCCP_KEEP_SEQUENCE,
            Self::NoWay => LCCP_KEEP_NO_WAY,
            Self::Busy => LCCP_KEEP_BUSY,
            Self::Unfinished => LCCP_KEEP_UNFINISHED,
            Self::Unknown => LCCP_KEEP_UNKNOWN,
            Self::Begins => LCCP_KEEP_BEGINS,
            Self::More => LCCP_KEEP_MORE,
            Self::Missing => LCCP_KEEP_MISSING,
            Self::Come => LCCP_KEEP_COME,
            Self::Tunnel => LCCP_KEEP_TUNNEL,
            Self::Other => 0,
        }
    }

    pub(crate) const fn from_number(number: u32) -> Self {
        match number {
            LCCP_KEEP_STATE => Self::State,
            LCCP_KEEP_UNSENT => Self::Unsent,
            LCCP_KEEP_UNREAD => Self::Unread,
            LCCP_KEEP_SEQUENCE => Self::Sequence,
            LCCP_KEEP_NO_WAY => Self::NoWay,
            LCCP_KEEP_BUSY => Self::Busy,
            LCCP_KEEP_UNFINISHED => Self::Unfinished,
            LCCP_KEEP_UNKNOWN => Self::Unknown,
            LCCP_KEEP_BEGINS => Self::Begins,
            LCCP_KEEP_MORE => Self::More,
            LCCP_KEEP_MISSING => Self::Missing,
            LCCP_KEEP_COME => Self::Come,
            LCCP_KEEP_TUNNEL => Self::Tunnel,
            _ => Self::Other,
        }
    }
}
