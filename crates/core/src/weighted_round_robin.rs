//! The sequence of turns: round robin and weighted round robin as a sequence to walk.
//!
//! A server has as many turns as its weight says, spread evenly, in the manner of nginx's smooth weighted round
//! robin. In addition no server has two turns in a row where that can be avoided, also where the sequence's end
//! meets its beginning.

use std::num::NonZeroU8;

/// The longest sequence there is: what the choices map holds for one service.
pub const MAX_TURNS: usize = baton_abi::CHOICES_PER_POOL as usize;

/// The sequence for servers of these weights: at each turn the index of one of them. Its length is
/// the sum of the weights over their greatest common divisor.
///
/// A sequence that would be longer than [`MAX_TURNS`] is shortened: the weights are divided by the smallest number
/// that suffices and rounded, and every server keeps at least one turn. If there are more than [`MAX_TURNS`]
/// servers the last ones get none.
pub fn sequence(weights: &[NonZeroU8]) -> Vec<usize> {
    spread(&turns(&weights[..weights.len().min(MAX_TURNS)]))
}

/// How many turns each server has.
fn turns(weights: &[NonZeroU8]) -> Vec<usize> {
    let weights: Vec<usize> = weights.iter().map(|weight| weight.get().into()).collect();
    let common = weights
        .iter()
        .copied()
        .fold(0, greatest_common_divisor)
        .max(1);
    let least: Vec<usize> = weights.iter().map(|weight| weight / common).collect();
    // At 2 * 255 every weight has become one turn, and there are at most MAX_TURNS of them.
    (1..=2 * usize::from(u8::MAX))
        .map(|divisor| {
            least
                .iter()
                .map(|turns| ((turns + divisor / 2) / divisor).max(1))
                .collect()
        })
        .find(|turns: &Vec<usize>| turns.iter().sum::<usize>() <= MAX_TURNS)
        .unwrap_or(least)
}

/// A sequence with `turns[i]` times `i`.
fn spread(turns: &[usize]) -> Vec<usize> {
    let total: usize = turns.iter().sum();
    match (0..turns.len()).max_by_key(|&index| turns[index]) {
        None => Vec::new(),
        Some(most) if turns[most] > total - turns[most] => around_the_heavy(turns, most),
        Some(_) => Interleaved::new(turns).collect(),
    }
}

/// The sequence if one server has more turns than all others together: that one has some turns in a row, but no
/// other does. Its turns go in runs, as equal as can be, between the others' turns.
fn around_the_heavy(turns: &[usize], heavy: usize) -> Vec<usize> {
    let mut others = turns.to_vec();
    let own = std::mem::take(&mut others[heavy]);
    let others = if others.iter().any(|&turns| turns > 0) {
        spread(&others)
    } else {
        Vec::new()
    };
    let gaps = others.len().max(1);
    let mut sequence = Vec::with_capacity(own + others.len());
    for gap in 0..gaps {
        let run = (gap + 1) * own / gaps - gap * own / gaps;
        sequence.extend(std::iter::repeat_n(heavy, run));
        sequence.extend(others.get(gap));
    }
    sequence
}

/// The sequence if no server has more than half of the turns, so that none needs two in a row.
///
/// Each turn goes to the server furthest behind its share, as in nginx, but not to the one that had the turn
/// before, and not if some server would then have too many turns left for the rest of the sequence.
struct Interleaved<'a> {
    turns: &'a [usize],
    length: usize,
    /// The turns that are left of each server; `all_left` is their sum.
    left: Vec<usize>,
    all_left: usize,
    /// How far each server is behind its share, in turns times the sequence's length.
    behind: Vec<isize>,
    first: Option<usize>,
    last: Option<usize>,
}

impl<'a> Interleaved<'a> {
    fn new(turns: &'a [usize]) -> Self {
        let length = turns.iter().sum();
        Self {
            turns,
            length,
            left: turns.to_vec(),
            all_left: length,
            behind: vec![0; turns.len()],
            first: None,
            last: None,
        }
    }

    /// Whether `left` turns of `index` go into the `rest` of the sequence without two in a row: into
    /// every second turn of it, save those beside a turn that is its own already. `gone` says
    /// whether it has the turn just before the rest.
    fn fits(&self, index: usize, left: usize, rest: usize, gone: bool) -> bool {
        let closes = self.first.map_or(gone, |first| first == index);
        let beside = usize::from(gone) + usize::from(closes);
        left <= rest.saturating_sub(beside).div_ceil(2)
    }

    fn choose(&self, rest: usize) -> Option<usize> {
        let with_turns = || {
            (0..self.turns.len()).filter(|&index| self.left[index] > 0 && Some(index) != self.last)
        };
        // A server whose turns would no longer fit if another one went now has to go first.
        let must = with_turns().find(|&index| !self.fits(index, self.left[index], rest, false));
        must.or_else(|| {
            with_turns()
                .filter(|&index| self.fits(index, self.left[index] - 1, rest, true))
                .max_by_key(|&index| (self.behind[index], std::cmp::Reverse(index)))
        })
    }
}

impl Iterator for Interleaved<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let rest = self.all_left.checked_sub(1)?;
        for (behind, &turns) in self.behind.iter_mut().zip(self.turns) {
            // At most MAX_TURNS, so it fits.
            *behind += turns as isize;
        }
        let chosen = self.choose(rest)?;
        self.behind[chosen] -= self.length as isize;
        self.left[chosen] -= 1;
        self.all_left = rest;
        self.first.get_or_insert(chosen);
        self.last = Some(chosen);
        Some(chosen)
    }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}
