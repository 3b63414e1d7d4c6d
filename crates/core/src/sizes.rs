//! Size classes: which paths of a service are large, from the data servers that hold them to the
//! connection servers that route by it. What several data servers tell is added up: a path is large if it is anywhere.

use std::collections::{BTreeMap, BTreeSet};

use baton_wire::{Address, Endpoint, LargePaths, PathHash};

/// What a connection server has heard of all data servers.
#[derive(Clone, Debug, Default)]
pub struct Known(BTreeMap<Address, LargePaths>);

impl Known {
    /// Takes all that a data server tells. True if it was something else before.
    pub fn handle(&mut self, from: Address, told: LargePaths) -> bool {
        self.0.get(&from) != Some(&told) && {
            self.0.insert(from, told);
            true
        }
    }

    /// Forgets what is of no data server of a service any more. True if that changed anything.
    pub fn keep(&mut self, serves: impl Fn(Address, Endpoint) -> bool) -> bool {
        let lists = self.0.iter_mut();
        lists.fold(false, |changed, (from, told)| {
            told.keep(|at| serves(*from, at)) | changed
        })
    }

    /// The large paths of a service.
    pub fn large(&self, at: Endpoint) -> BTreeSet<PathHash> {
        self.0.values().flat_map(|told| told.of(at)).collect()
    }
}
