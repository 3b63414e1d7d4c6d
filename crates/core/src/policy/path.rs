//! Chooses by the request's path: a Maglev table, so that each server's memory holds a part of the content.

use super::rule::Rule;
use super::server::{Server, named};
use crate::{Moment, maglev};

#[derive(Debug)]
pub(super) struct Path;

impl Rule for Path {
    fn choices(&mut self, _: Moment, servers: &[Server<'_>]) -> Vec<usize> {
        maglev::table(&named(servers)).unwrap_or_default()
    }
}
