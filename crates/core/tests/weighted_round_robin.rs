//! What holds for every sequence of turns.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::num::NonZeroU8;

use baton_core::weighted_round_robin::{MAX_TURNS, sequence};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #[test]
    fn shares_are_exact(weights in weights()) {
        let sequence = sequence(&weights);
        let sum: usize = weights.iter().map(|weight| usize::from(weight.get())).sum();
        prop_assume!(sum <= MAX_TURNS);
        for (turns, weight) in turns(&sequence, weights.len()).into_iter().zip(&weights) {
            prop_assert_eq!(turns * sum, usize::from(weight.get()) * sequence.len());
        }
    }

    #[test]
    fn nobody_goes_twice_in_a_row_where_avoidable(weights in weights()) {
        let sequence = sequence(&weights);
        let most = turns(&sequence, weights.len()).into_iter().max().unwrap();
        let others = sequence.len() - most;
        // The sequence is walked round and round, so its end is followed by its beginning.
        let rows = sequence.iter().zip(sequence.iter().cycle().skip(1)).filter(|(one, next)| one == next);
        prop_assert_eq!(rows.count(), most.saturating_sub(others), "{:?}", sequence);
    }

    #[test]
    fn nobody_is_ever_two_turns_from_its_share(weights in weights()) {
        let sequence = sequence(&weights);
        let shares: Vec<f64> =
            turns(&sequence, weights.len()).iter().map(|&turns| turns as f64 / sequence.len() as f64).collect();
        let mut had = vec![0.0; weights.len()];
        for (gone, &index) in sequence.iter().enumerate() {
            had[index] += 1.0;
            for (had, share) in had.iter().zip(&shares) {
                let due = share * (gone + 1) as f64;
                prop_assert!((had - due).abs() < 2.0, "{had} turns of {due} after {gone}: {sequence:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5))]

    #[test]
    fn a_wheel_too_long_is_shortened_and_stays_near_the_shares(weights in vec(any::<NonZeroU8>(), 200..=256)) {
        let sequence = sequence(&weights);
        prop_assert!(sequence.len() <= MAX_TURNS);
        let sum: f64 = weights.iter().map(|weight| f64::from(weight.get())).sum();
        for (turns, weight) in turns(&sequence, weights.len()).into_iter().zip(&weights) {
            prop_assert!(turns > 0);
            let due = f64::from(weight.get()) / sum * sequence.len() as f64;
            prop_assert!((turns as f64 - due).abs() < 0.05 * due + 1.0, "{turns} turns of {due}");
        }
    }
}

/// Checks every sequence of up to five servers with up to six turns each. In these small cases one turn too many or too
/// few leaves no way to avoid a row.
#[test]
fn small_wheels_have_no_avoidable_rows() {
    let mut checked = 0;
    for code in 1..7usize.pow(5) {
        let weights: Vec<NonZeroU8> = (0..5)
            .filter_map(|place| NonZeroU8::new((code / 7usize.pow(place) % 7) as u8))
            .collect();
        let sequence = sequence(&weights);
        let most = turns(&sequence, weights.len()).into_iter().max().unwrap();
        let rows = (0..sequence.len())
            .filter(|&at| sequence[at] == sequence[(at + 1) % sequence.len()])
            .count();
        assert_eq!(
            rows,
            (2 * most).saturating_sub(sequence.len()),
            "{weights:?}: {sequence:?}"
        );
        checked += 1;
    }
    assert_eq!(checked, 16806);
}

#[test]
fn no_servers_have_no_turns_and_one_has_one() {
    assert!(sequence(&[]).is_empty());
    assert_eq!(sequence(&[NonZeroU8::MAX]), [0]);
}

#[test]
fn the_heavy_ones_turns_are_spread_evenly() {
    let weights = [5, 1, 1].map(|weight| NonZeroU8::new(weight).unwrap());
    let sequence = sequence(&weights);
    // nginx makes "a a b a c a a" of these weights: there, a has four turns in a row from the end to the beginning.
    assert_eq!(sequence, [0, 0, 1, 0, 0, 0, 2]);
}

fn weights() -> impl Strategy<Value = Vec<NonZeroU8>> {
    let weight = |most: u8| (1..=most).prop_map(|weight| NonZeroU8::new(weight).unwrap());
    prop_oneof![
        vec(weight(3), 1..=8),
        vec(weight(20), 1..=20),
        vec(weight(255), 1..=6),
        vec(weight(255), 1..=30),
    ]
}

fn turns(sequence: &[usize], servers: usize) -> Vec<usize> {
    let mut turns = vec![0; servers];
    for &index in sequence {
        turns[index] += 1;
    }
    turns
}
