//! The lookup table of consistent hashing, after Maglev (Eisenbud et al., NSDI 2016, section 3.4).
//!
//! Every server has its own order of preference over the table's places; in turns, each takes the
//! next place of its order that is still free. So shares are even, and when a server leaves, few
//! places that were not its own change hands.
//!
//! The table depends on names and weights alone: it is the same on every CS, in every release, and
//! whatever the order of the input. Orders of preference come of SipHash-2-4 of the name:
//!
//! ```text
//! offset = SipHash-2-4("baton maglev off", name) mod SIZE
//! skip   = SipHash-2-4("baton maglev hop", name) mod (SIZE - 1) + 1
//! place j of the order = (offset + j * skip) mod SIZE
//! ```

use std::num::NonZeroU8;

use siphasher::sip::SipHasher24;

/// Places in a table. A prime, so that every skip leads through all places.
pub const SIZE: usize = baton_abi::CHOICES_PER_POOL as usize;

/// The table for servers of these names and weights: at each place the index of one of `servers`,
/// as often as its weight is of the weights' sum. `None` if there are no servers.
///
/// Weights are the paper's "relative frequency of the backends' turns": one with half the greatest
/// weight has a turn in every second round. In the first all have one, so everyone has a place.
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
                // No place is None now, so none is lost.
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
    /// The next place of its order of preference.
    next: usize,
    skip: usize,
}

impl<'a> Player<'a> {
    fn new(index: usize, name: &'a str, weight: u8, greatest: u8) -> Self {
        let hash = |key| SipHasher24::new_with_key(key).hash(name.as_bytes());
        // A remainder of SIZE, 16381, fits any usize.
        let next = (hash(b"baton maglev off") % SIZE as u64) as usize;
        let skip = (hash(b"baton maglev hop") % (SIZE as u64 - 1)) as usize + 1;
        // All have a turn in the first round, so that nobody is left without a place.
        let credit = u16::from(greatest - weight);
        Self {
            index,
            name,
            weight,
            credit,
            next,
            skip,
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
        while places[self.next].is_some() {
            self.next = (self.next + self.skip) % SIZE;
        }
        places[self.next] = Some(self.index);
    }
}

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
        assert_eq!(hash(&servers), 0x6228_8db0_44f7_43e9);
        assert_eq!(hash(&servers[..3]), 0xff81_2ac5_46eb_761d);
    }
}
