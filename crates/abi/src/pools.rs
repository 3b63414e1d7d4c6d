//! The members of a pool.

use crate::Pool;

impl Pool {
    /// Whether the data server in this slot is a member.
    pub fn has(&self, slot: u16) -> bool {
        let word = self.members.get(usize::from(slot / 64));
        word.is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_bits_of_four_words() {
        let pool = Pool {
            members: [1, 0, 0, 1 << 63],
            ..Pool::default()
        };
        for (slot, is_member) in [
            (0, true),
            (1, false),
            (64, false),
            (255, true),
            (256, false),
            (u16::MAX, false),
        ] {
            assert_eq!(pool.has(slot), is_member, "{slot}");
        }
    }
}
