//! Why a message is dropped.

use baton_abi::{
    COUNTER_LCCP_BAD_TAG, COUNTER_LCCP_BAD_VERSION, COUNTER_LCCP_MISMATCH,
    COUNTER_LCCP_NOT_ALLOWED, COUNTER_LCCP_SHORT, COUNTER_LCCP_STALE, COUNTER_LCCP_UNKNOWN,
};

/// Why a message is dropped in silence. Each reason has its counter in `bpf/abi/counters.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Reject {
    /// There are fewer bytes than the header, the body or the client's packet need, or the body is longer than
    /// `LCCP_MAX_BODY`.
    #[error("the message is cut short")]
    Short,
    /// The message has another version than ours.
    #[error("the message is of another version of LCCP")]
    BadVersion,
    /// The tag is wrong: made under none of our keys, for other nodes, or around another packet; or the message was
    /// altered on its way.
    #[error("the message's tag is wrong: its sender has another cluster key, or none")]
    BadTag,
    /// The tag is right, but a node with only its own keys may not give this command.
    #[error(
        "the message is a command, and its sender has only its own keys: other nodes take no commands from it"
    )]
    NotAllowed,
    /// The sender's clock is too far from ours: the message is a replay, or a clock lacks NTP.
    #[error("the message is older or newer than the clock window allows")]
    Stale,
    /// The tag is right, but this receptor has no such command, or a value has no meaning.
    #[error("the message has a command or a value that this version does not know")]
    Unknown,
    /// The carried packet is not a TCP segment of the message's flow.
    #[error("the message carries a packet of another flow")]
    Mismatch,
}

impl Reject {
    /// The number of the counter for this reason (`enum counter`).
    pub const fn counter(self) -> u32 {
        match self {
            Self::Short => COUNTER_LCCP_SHORT,
            Self::BadVersion => COUNTER_LCCP_BAD_VERSION,
            Self::BadTag => COUNTER_LCCP_BAD_TAG,
            Self::NotAllowed => COUNTER_LCCP_NOT_ALLOWED,
            Self::Stale => COUNTER_LCCP_STALE,
            Self::Unknown => COUNTER_LCCP_UNKNOWN,
            Self::Mismatch => COUNTER_LCCP_MISMATCH,
        }
    }
}
