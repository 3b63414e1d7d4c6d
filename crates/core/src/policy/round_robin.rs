//! Round robin: the servers take turns.

use std::num::NonZeroU8;

use super::{Rule, Server};
use crate::{Moment, turn};

#[derive(Debug)]
pub(super) struct RoundRobin;

impl Rule for RoundRobin {
    fn choices(&mut self, _: Moment, servers: &[Server<'_>]) -> Vec<usize> {
        turn::wheel(&vec![NonZeroU8::MIN; servers.len()])
    }
}
