//! A step that checks how connections are shared out.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::step::clients::http::whoami;
use crate::world::World;

/// Makes connections one after the other, and counts which data server answers each.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shares {
    /// The number of connections that each data server must get; no other may get any.
    exact: BTreeMap<String, usize>,
    /// By how much each number may differ.
    #[serde(default)]
    give_or_take: usize,
}

impl Shares {
    /// Runs the step.
    ///
    /// # Errors
    /// A connection failed, or the shares differ.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let total: usize = self.exact.values().sum();
        let shares = world.lab.within("client", || {
            let mut shares: BTreeMap<String, usize> = BTreeMap::new();
            for _ in 0..total {
                *shares.entry(whoami(None)?).or_insert(0) += 1;
            }
            anyhow::Ok(shares)
        })??;
        ensure!(
            shares.keys().eq(self.exact.keys())
                && (shares.values().zip(self.exact.values()))
                    .all(|(share, exact)| share.abs_diff(*exact) <= self.give_or_take),
            "the shares are {shares:?} instead of {:?}",
            self.exact
        );
        Ok(())
    }
}
