//! Weighted round robin: the servers take turns, each as often as its weight says.

use std::num::NonZeroU8;

use super::rule::Rule;
use super::server::Server;
use crate::{Moment, weighted_round_robin};

#[derive(Debug)]
pub(super) struct Weighted;

impl Rule for Weighted {
    fn choices(&mut self, _: Moment, servers: &[Server<'_>]) -> Vec<usize> {
        let weights: Vec<NonZeroU8> = servers.iter().map(|server| server.weight).collect();
        weighted_round_robin::sequence(&weights)
    }
}
