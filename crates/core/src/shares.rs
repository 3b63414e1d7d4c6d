//! How much of a limited room each holder has, so that the one that has most gives way and not the one that came
//! last.

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
    /// What all have together.
    pub fn sum(&self) -> usize {
        self.sum
    }

    /// Notes that `who` has this much more.
    pub fn add(&mut self, who: C, more: usize) {
        *self.of.entry(who).or_default() += more;
        self.sum += more;
    }

    /// Notes that `who` has this much less, at most what it had.
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

    /// The one that has most; `None` if nobody has anything.
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
