//! What every policy must do.

use std::fmt::Debug;

use super::server::Server;
use crate::Moment;

/// What a policy does with a pool's servers, of which there is at least one.
///
/// The servers come in the order of their names. The result names them by index, at most `CHOICES_PER_POOL`
/// times in all. Each server that is to be a member of the pool must be named at least once: one that is not
/// named is no member, and when it is named again every connection chooses anew.
pub(super) trait Rule: Debug + Send {
    /// The choices now.
    fn choices(&mut self, now: Moment, servers: &[Server<'_>]) -> Vec<usize>;

    /// When the choices may change though the servers stay the same; `None` (never) where loads mean nothing.
    fn next_timeout(&self) -> Option<Moment> {
        None
    }
}
