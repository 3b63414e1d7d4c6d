//! Whether a node is heard.

use baton_wire::{Clock, Incarnation, Permille};

use crate::Moment;

/// Whether a node is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The node was not heard since the start, but that was only just now, so it counts as heard.
    Awaited {
        /// When the node becomes silent.
        until: Moment,
    },
    /// The node sends HELLO.
    Heard {
        /// When the node becomes silent, unless it is heard again.
        until: Moment,
        /// Which run of the node's daemon sent the last HELLO.
        incarnation: Incarnation,
        /// The node's clock when it sent the last HELLO.
        sent: Clock,
        /// How busy the node was then.
        cpu: Permille,
    },
    /// The node has not been heard for too long, or never.
    Silent,
}

impl Presence {
    /// Whether rule 2 counts the node as heard.
    pub fn is_present(&self) -> bool {
        !matches!(self, Self::Silent)
    }

    pub(super) fn timeout(&self) -> Option<Moment> {
        match *self {
            Self::Awaited { until } | Self::Heard { until, .. } => Some(until),
            Self::Silent => None,
        }
    }

    /// Whether what `incarnation` sent at `sent` is older than what was heard already.
    ///
    /// For a silent node nothing is older: otherwise a node whose clock was set back would be shut out until its
    /// clock has caught up.
    pub(super) fn is_ahead_of(&self, incarnation: Incarnation, sent: Clock) -> bool {
        match *self {
            Self::Heard {
                incarnation: last,
                sent: last_sent,
                ..
            } => (incarnation, sent) < (last, last_sent),
            Self::Awaited { .. } | Self::Silent => false,
        }
    }
}
