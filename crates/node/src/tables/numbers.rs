//! The numbers by which the programs' maps name things.

use std::{collections::HashMap, hash::Hash, ops::Range};

/// A number for each thing. One that was taken back is given again as late as possible, because connections may still
/// name it.
#[derive(Debug)]
pub struct Numbers<K> {
    given: HashMap<K, u16>,
    all: Range<u16>,
    /// Where the search for a free number begins.
    next: u16,
}

impl<K: Copy + Eq + Hash> Numbers<K> {
    /// Gives numbers out of `all`, of which some were given before.
    pub fn over(all: Range<u16>, given: impl IntoIterator<Item = (K, u16)>) -> Self {
        let given: HashMap<_, _> = given.into_iter().collect();
        let next = given.values().max().map_or(all.start, |last| last + 1);
        Self { given, all, next }
    }

    /// The number of a thing, if it has one.
    pub fn get(&self, of: &K) -> Option<u16> {
        self.given.get(of).copied()
    }

    /// Gives a number to a thing that has none. `None`: none is free.
    pub fn give(&mut self, to: K) -> Option<u16> {
        let number = (self.next..self.all.end)
            .chain(self.all.start..self.next)
            .find(|number| !self.given.values().any(|used| used == number))?;
        self.next = number + 1;
        self.given.insert(to, number);
        Some(number)
    }

    /// Takes back the numbers of all things but these, and returns them.
    pub fn keep(&mut self, these: &[K]) -> Vec<u16> {
        let gone = self.given.extract_if(|of, _| !these.contains(of));
        gone.map(|(_, number)| number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_given_again_as_late_as_can_be() {
        let mut numbers = Numbers::over(3..7, [('a', 4)]);
        assert_eq!(numbers.get(&'a'), Some(4));
        assert_eq!([numbers.give('b'), numbers.give('c')], [Some(5), Some(6)]);
        assert_eq!(numbers.keep(&['a', 'c']), [5]);
        assert_eq!([numbers.give('d'), numbers.give('e')], [Some(3), Some(5)]);
        assert_eq!(numbers.give('f'), None);
    }
}
