//! Whether this candidate understands the others: it hears nobody as well if its own key, version or clock
//! is wrong, and then nobody is missing.
//!
//! What was not understood is anybody's word. So it counts only until the first word that was understood,
//! from whichever node of the cluster; a forger has to be faster than all of them, and keeps one candidate
//! from taking over, not the others.

use std::time::Duration;

use baton_wire::Address;

use crate::Moment;

#[derive(Debug, Default)]
pub(super) enum Hearing {
    /// Nothing yet.
    #[default]
    Nobody,
    /// Only what could not be understood, the last then and from this node.
    Unintelligible { at: Moment, from: Address },
    /// Somebody, once.
    Understood,
}

impl Hearing {
    pub(super) fn understand(&mut self) {
        *self = Self::Understood;
    }

    /// `true`: the first for a while that is all that was heard.
    pub(super) fn overhear(&mut self, now: Moment, from: Address, detection: Duration) -> bool {
        if matches!(self, Self::Understood) {
            return false;
        }
        let is_first = self.unintelligible(now, detection).is_none();
        *self = Self::Unintelligible { at: now, from };
        is_first
    }

    /// Who is there and not understood.
    pub(super) fn unintelligible(&self, now: Moment, detection: Duration) -> Option<Address> {
        match self {
            Self::Unintelligible { at, from } if now.since(*at) < detection => Some(*from),
            _ => None,
        }
    }

    /// When one was last heard that is not understood.
    pub(super) fn at(&self) -> Option<Moment> {
        match self {
            Self::Unintelligible { at, .. } => Some(*at),
            Self::Nobody | Self::Understood => None,
        }
    }
}
