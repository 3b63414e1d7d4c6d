//! Who has how much of what there is only so much room for, so that whoever has most gives way, and not whoever came last.

use std::{collections::HashMap, hash::Hash};

/// How much each `C` has.
#[derive(Debug)]
pub struct Shares<C> {
    of: HashMap<C, usize>,
    sum: usize,
}

impl<C> Default for Shares<C> {
    fn default() -> Self {
        Self {
            of: HashMap::new(),
            sum: 0,
        }
    }
}

impl<C: Copy + Eq + Hash> Shares<C> {
    /// All together.
    pub fn sum(&self) -> usize {
        self.sum
    }

    /// This one has so much more.
    pub fn add(&mut self, who: C, more: usize) {
        *self.of.entry(who).or_default() += more;
        self.sum += more;
    }

    /// This one has so much less: no more than it had.
    pub fn remove(&mut self, who: C, less: usize) {
        let Some(has) = self.of.get_mut(&who) else {
            return;
        };
        let less = less.min(*has);
        *has -= less;
        self.sum -= less;
        if *has == 0 {
            self.of.remove(&who);
        }
    }

    /// Who has most.
    pub fn greatest(&self) -> Option<C> {
        self.of
            .iter()
            .max_by_key(|(_, has)| **has)
            .map(|(&who, _)| who)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_most() {
        let mut shares = Shares::default();
        assert_eq!(shares.greatest(), None);
        shares.add('a', 2);
        shares.add('b', 1);
        shares.add('b', 2);
        assert_eq!((shares.sum(), shares.greatest()), (5, Some('b')));
        shares.remove('b', 2);
        assert_eq!((shares.sum(), shares.greatest()), (3, Some('a')));
        shares.remove('a', 9);
        shares.remove('c', 1);
        assert_eq!((shares.sum(), shares.greatest()), (1, Some('b')));
        shares.remove('b', 1);
        assert_eq!((shares.sum(), shares.greatest()), (0, None));
    }
}
