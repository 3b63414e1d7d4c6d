//! Frames that the other end must not send.

use crate::wire::{ListenerTag, Tag};

use super::lanes::MAX_ANSWERS;

/// A frame that is against the rules. Each is counted in [`Counters`](super::Counters).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The frame was meant for an earlier channel; it is ignored.
    #[error("a frame of epoch {found}, and this channel's is {epoch}")]
    Stale {
        /// The epoch that the frame carries.
        found: u32,
        /// The epoch that this end gave in its Hello.
        epoch: u32,
    },
    /// The frame is about a connection that does not exist; it is ignored.
    #[error("a frame about connection {}, which does not exist", tag.0)]
    UnknownTag {
        /// The connection's tag.
        tag: Tag,
    },
    /// The frame asks for a second listener of the same number; it is ignored.
    #[error("a second listener with number {}, which is in use", listener.0)]
    ListenerInUse {
        /// The listener's number.
        listener: ListenerTag,
    },
    /// The frame has more bytes than the receiver has room for; the connection is reset.
    #[error("{by} bytes of connection {} beyond its credit", tag.0)]
    BeyondCredit {
        /// The connection's tag.
        tag: Tag,
        /// By how many bytes the frame exceeds L_r.
        by: u64,
    },
    /// The frame has a smaller limit than before; it is ignored.
    #[error("a credit limit of connection {} that is lower than before", tag.0)]
    CreditShrunk {
        /// The connection's tag.
        tag: Tag,
    },
    /// The frame has bytes behind the end of the connection's bytes; the connection is reset.
    #[error("bytes of connection {} after its end", tag.0)]
    AfterShutdown {
        /// The connection's tag.
        tag: Tag,
    },
    /// The frame makes a second connection of the same tag, or one with a tag that the other end must not choose; it
    /// is ignored.
    #[error("a connection with tag {}, which is not free", tag.0)]
    TagInUse {
        /// The tag that is not free.
        tag: Tag,
    },
    /// The frame answers what was not asked, or has bytes before the answer; the connection is reset.
    #[error("a frame that is not allowed in the state of connection {}", tag.0)]
    OutOfPlace {
        /// The connection's tag.
        tag: Tag,
    },
    /// The first frame was no Hello, or a later one was a Hello. The channel must be given up.
    #[error("the channel did not begin with exactly one Hello")]
    Hello,
    /// The frame is one that only this end's side may send. The channel must be given up.
    #[error("the other end sent a frame that only this side may send")]
    WrongSide,
    /// The other end goes on to send what must be answered and does not read the answers. The channel must be given
    /// up.
    #[error("the other end does not read: {MAX_ANSWERS} answers wait to be sent to it")]
    Unread,
}

impl Fault {
    /// Whether the channel cannot go on.
    pub const fn breaks_channel(&self) -> bool {
        matches!(self, Self::Hello | Self::WrongSide | Self::Unread)
    }
}
