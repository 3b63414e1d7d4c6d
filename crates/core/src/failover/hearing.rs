//! Whether this candidate understands the others. If its own key, version or clock is wrong it understands
//! nobody, and then silence does not mean that the others are missing.
//!
//! A message that was not understood may be forged. So it counts only until the first message that was
//! understood, from whichever node of the cluster. A forger has to be faster than all nodes, and keeps only one
//! candidate from taking over, not the others.

use std::time::Duration;

use baton_wire::Address;

use crate::Moment;

#[derive(Debug, Default)]
pub(super) enum Hearing {
    /// Nothing was heard yet.
    #[default]
    Nobody,
    /// Only messages that could not be understood were heard, the last one at this time from this node.
    Unintelligible { at: Moment, from: Address },
    /// At least one message was understood.
    Understood,
}

impl Hearing {
    pub(super) fn understand(&mut self) {
        *self = Self::Understood;
    }

    /// Notes a message that was not understood. Returns `true` if nothing was understood yet and this is the
    /// first such message within `detection`.
    pub(super) fn overhear(&mut self, now: Moment, from: Address, detection: Duration) -> bool {
        if matches!(self, Self::Understood) {
            return false;
        }
        let is_first = self.unintelligible(now, detection).is_none();
        *self = Self::Unintelligible { at: now, from };
        is_first
    }

    /// The node whose message was heard last but not understood, if that was less than `detection` ago and
    /// nothing was understood yet.
    pub(super) fn unintelligible(&self, now: Moment, detection: Duration) -> Option<Address> {
        match self {
            Self::Unintelligible { at, from } if now.since(*at) < detection => Some(*from),
            _ => None,
        }
    }

    /// When a message was last heard that was not understood; `None` once one was understood.
    pub(super) fn at(&self) -> Option<Moment> {
        match self {
            Self::Unintelligible { at, .. } => Some(*at),
            Self::Nobody | Self::Understood => None,
        }
    }
}
