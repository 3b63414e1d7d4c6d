//! Whether a node is heard.

use baton_wire::{Clock, Incarnation, Permille};

use crate::Moment;

/// Whether a node is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Not heard since the start, which was only just now: counts as heard.
    Awaited {
        /// Then it is silent.
        until: Moment,
    },
    /// It sends HELLO.
    Heard {
        /// Then it is silent, unless it is heard again.
        until: Moment,
        /// Which life of its daemon.
        incarnation: Incarnation,
        /// Its clock when it sent the last.
        sent: Clock,
        /// How busy it was then.
        cpu: Permille,
    },
    /// It has not been heard for too long, or never.
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
    /// Of a silent node nothing is: a node whose clock was set back would else be shut out until
    /// its clock has caught up.
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
