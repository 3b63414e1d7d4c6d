//! Round robin: the servers take turns.

use std::num::NonZeroU8;

use super::rule::Rule;
use super::server::Server;
use crate::{Moment, weighted_round_robin};

#[derive(Debug)]
pub(super) struct RoundRobin;

impl Rule for RoundRobin {
    fn choices(&mut self, _: Moment, servers: &[Server<'_>]) -> Vec<usize> {
        weighted_round_robin::sequence(&vec![NonZeroU8::MIN; servers.len()])
    }
}
