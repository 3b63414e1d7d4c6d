//! Size classes: which paths of a service are large, as the data servers that hold them tell the connection
//! servers that route by it. What several data servers tell is added up: a path is large if any of them says so.

use std::collections::{BTreeMap, BTreeSet};

use baton_wire::{Address, Endpoint, LargePaths, PathHash};

/// What a connection server has heard from all data servers about large paths.
#[derive(Clone, Debug, Default)]
pub struct Known(BTreeMap<Address, LargePaths>);

impl Known {
    /// Takes all that a data server tells. Returns `true` if it told something else before.
    pub fn handle(&mut self, from: Address, told: LargePaths) -> bool {
        self.0.get(&from) != Some(&told) && {
            self.0.insert(from, told);
            true
        }
    }

    /// The large paths of a service, as told by the data servers that serve it. What others tell is kept and
    /// counts as soon as they serve it: it is told once, maybe before the configuration here says so.
    pub fn large(
        &self,
        at: Endpoint,
        serves: impl Fn(Address, Endpoint) -> bool,
    ) -> BTreeSet<PathHash> {
        let told = self.0.iter().filter(|(from, _)| serves(**from, at));
        told.flat_map(|(_, told)| told.of(at)).collect()
    }
}
