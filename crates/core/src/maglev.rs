//! The lookup table of consistent hashing, after Maglev (Eisenbud et al., NSDI 2016, section 3.4).
//!
//! Every server has its own order of preference over the table's places. The servers take turns, and each takes
//! the next place of its order that is still free. So shares are even, and when a server leaves, few places that
//! were not its own change hands.
//!
//! The table depends on names and weights alone: it is the same on every CS, in every release, and whatever the
//! order of the input. The orders of preference follow from SipHash-2-4 of the name:
//!
//! ```text
//! offset = SipHash-2-4("baton maglev off", name) mod SIZE
//! skip   = SipHash-2-4("baton maglev hop", name) mod (SIZE - 1) + 1
//! place j of the order = (offset + skip * (j + 1)^11) mod SIZE
//! ```
//!
//! The paper has j in place of (j + 1)^11, which also runs through all places. But then two servers may follow
//! each other through a whole table, and each place depends on which of them came first. When a third server
//! leaves and turns shift, all these places change hands (17 % of a table were seen).

use std::num::NonZeroU8;
use std::sync::LazyLock;

use siphasher::sip::SipHasher24;

/// The number of places in a table. It is a prime, so that every skip leads through all places. One less than it
/// has no divisor in common with [`SCATTER`], so that the powers lead through all places as well.
pub const SIZE: usize = baton_abi::CHOICES_PER_POOL as usize;

const SCATTER: u32 = 11;

/// The table for servers of these names and weights. Each place has the index of one of `servers`; a server's
/// part of the places is its part of the sum of weights. `None` if there are no servers.
///
/// Weights are the paper's "relative frequency of the backends' turns": a server with half the greatest weight
/// has a turn in every second round. In the first round all servers have one, so that every server has a place.
pub fn table(servers: &[(&str, NonZeroU8)]) -> Option<Vec<usize>> {
    let greatest = servers.iter().map(|(_, weight)| weight.get()).max()?;
    let mut players: Vec<_> = servers
        .iter()
        .enumerate()
        .map(|(index, (name, weight))| Player::new(index, name, weight.get(), greatest))
        .collect();
    players.sort_by_key(|player| (player.name, player.weight));

    let mut places = vec![None; SIZE];
    let mut free = SIZE;
    loop {
        for player in &mut players {
            if !player.has_turn(greatest) {
                continue;
            }
            player.take(&mut places);
            free -= 1;
            if free == 0 {
                // No place is `None` now, so `flatten` drops none.
                return Some(places.into_iter().flatten().collect());
            }
        }
    }
}

struct Player<'a> {
    index: usize,
    name: &'a str,
    weight: u8,
    credit: u16,
    /// The places that this server has not tried yet, in its order of preference.
    preferences: Box<dyn Iterator<Item = usize>>,
}

impl<'a> Player<'a> {
    fn new(index: usize, name: &'a str, weight: u8, greatest: u8) -> Self {
        // Every server has a turn in the first round, so that none is left without a place.
        let credit = u16::from(greatest - weight);
        Self {
            index,
            name,
            weight,
            credit,
            preferences: Box::new(preferences(name)),
        }
    }

    fn has_turn(&mut self, greatest: u8) -> bool {
        self.credit += u16::from(self.weight);
        let turn = self.credit >= u16::from(greatest);
        if turn {
            self.credit -= u16::from(greatest);
        }
        turn
    }

    /// Takes the first free place of its order. There must be one: the order goes through all.
    fn take(&mut self, places: &mut [Option<usize>]) {
        for place in self.preferences.by_ref() {
            if places[place].is_none() {
                places[place] = Some(self.index);
                return;
            }
        }
    }
}

/// Every place once, in the order in which a server of this name prefers them.
fn preferences(name: &str) -> impl Iterator<Item = usize> + use<> {
    let hash = |key| SipHasher24::new_with_key(key).hash(name.as_bytes());
    let size = SIZE as u64;
    let offset = hash(b"baton maglev off") % size;
    let skip = hash(b"baton maglev hop") % (size - 1) + 1;
    // A remainder of SIZE, 16381, fits any usize.
    SCATTERED
        .iter()
        .map(move |&scattered| ((offset + skip * scattered) % size) as usize)
}

/// The powers of 1 to SIZE with the exponent SCATTER, modulo SIZE.
static SCATTERED: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let size = SIZE as u64;
    (1..=size)
        .map(|step| (0..SCATTER).fold(1, |power, _| power * step % size))
        .collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_servers_make_no_table() {
        assert_eq!(table(&[]), None);
    }

    #[test]
    fn the_size_is_prime() {
        assert!((2..SIZE).all(|divisor| !SIZE.is_multiple_of(divisor)));
    }

    #[test]
    fn an_order_of_preference_has_every_place_once() {
        let mut places: Vec<_> = preferences("ds1").collect();
        places.sort_unstable();
        assert!(places.into_iter().eq(0..SIZE));
    }

    /// Changing this hash moves every client of every cluster that upgrades one CS at a time.
    #[test]
    fn the_table_is_the_same_in_every_release() {
        let weight = |weight| NonZeroU8::new(weight).unwrap();
        let servers = [
            ("ds1", weight(1)),
            ("ds2", weight(2)),
            ("ds3", weight(1)),
            ("ds4", weight(255)),
        ];
        let hash = |servers: &[(&str, NonZeroU8)]| {
            let bytes: Vec<u8> = table(servers)
                .unwrap()
                .iter()
                .map(|&index| index as u8)
                .collect();
            SipHasher24::new_with_keys(0, 0).hash(&bytes)
        };
        assert_eq!(hash(&servers), 0xe9c0_f04d_a257_237d);
        assert_eq!(hash(&servers[..3]), 0xca48_d167_d98f_1335);
    }
}
