//! How connections are shared out.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::step::clients::http::whoami;
use crate::world::World;

/// Makes connections one after the other and counts who answers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shares {
    /// So many each, and nobody else.
    exact: BTreeMap<String, usize>,
    /// How far each share may be from that.
    #[serde(default)]
    give_or_take: usize,
}

impl Shares {
    /// Does it.
    ///
    /// # Errors
    /// A connection failed, or the shares are others.
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
