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

    /// The large paths of a service, as those tell that serve it. What others tell counts when they do: it is told once, and
    /// maybe before the configuration here says so.
    pub fn large(
        &self,
        at: Endpoint,
        serves: impl Fn(Address, Endpoint) -> bool,
    ) -> BTreeSet<PathHash> {
        let told = self.0.iter().filter(|(from, _)| serves(**from, at));
        told.flat_map(|(_, told)| told.of(at)).collect()
    }
}
