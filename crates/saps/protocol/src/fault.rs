//! What the other end may not do.

use crate::wire::{ListenerTag, Tag};

use super::lanes::MAX_ANSWERS;

/// A frame that is against the rules. Each is counted in [`Counters`](super::Counters).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Meant for an earlier channel; ignored.
    #[error("a frame of epoch {found}, and this channel's is {epoch}")]
    Stale {
        /// What it carries.
        found: u32,
        /// What we gave in our Hello.
        epoch: u32,
    },
    /// About a connection that there is not; ignored.
    #[error("a frame about connection {}, which there is not", tag.0)]
    UnknownTag {
        /// Its tag.
        tag: Tag,
    },
    /// A second listener of the same number; ignored.
    #[error("a listener with number {}, which is not free", listener.0)]
    ListenerInUse {
        /// Its number.
        listener: ListenerTag,
    },
    /// More than there is room for; the connection is reset.
    #[error("{by} bytes more of connection {} than it may send", tag.0)]
    BeyondCredit {
        /// Of which connection.
        tag: Tag,
        /// How many too many.
        by: u64,
    },
    /// A smaller limit than before; ignored.
    #[error("connection {} was given less room than before", tag.0)]
    CreditShrunk {
        /// Of which connection.
        tag: Tag,
    },
    /// Bytes behind their end; the connection is reset.
    #[error("more bytes of connection {} behind their end", tag.0)]
    AfterShutdown {
        /// Of which connection.
        tag: Tag,
    },
    /// A second connection of the same tag, or one with a tag that is not for that end to choose; ignored.
    #[error("a connection with tag {}, which is not free", tag.0)]
    TagInUse {
        /// The tag.
        tag: Tag,
    },
    /// An answer to what was not asked, or bytes before the answer; the connection is reset.
    #[error("connection {} is not where this frame belongs", tag.0)]
    OutOfPlace {
        /// Of which connection.
        tag: Tag,
    },
    /// Something else than a Hello first, or a second Hello. The channel must be given up.
    #[error("the channel did not begin with one Hello")]
    Hello,
    /// What only the other side may say. The channel must be given up.
    #[error("the other end is not of the side that it speaks for")]
    WrongSide,
    /// It goes on to say what has to be answered, and takes no answers. The channel must be given up.
    #[error("the other end does not read: {MAX_ANSWERS} answers wait for it")]
    Unread,
}

impl Fault {
    /// Whether the channel cannot go on.
    pub const fn breaks_channel(&self) -> bool {
        matches!(self, Self::Hello | Self::WrongSide | Self::Unread)
    }
}
