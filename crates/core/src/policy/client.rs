//! Chooses by the client's address: a Maglev table, so that few clients move when a server comes or leaves.

use super::rule::Rule;
use super::server::{Server, named};
use crate::{Moment, maglev};

#[derive(Debug)]
pub(super) struct Client;

impl Rule for Client {
    fn choices(&mut self, _: Moment, servers: &[Server<'_>]) -> Vec<usize> {
        maglev::table(&named(servers)).unwrap_or_default()
    }
}
