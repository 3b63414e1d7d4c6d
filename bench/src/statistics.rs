//! Medians, spreads and percentiles of few numbers.

use std::fmt;

/// The median and the range of many measurements of the same thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// The middle value.
    pub median: f64,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
}

impl Spread {
    /// The spread of these numbers. All its values are NaN if there are none.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Spread {
        let mut sorted: Vec<f64> = numbers.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Spread {
            median: middle(&sorted),
            min: sorted.first().copied().unwrap_or(f64::NAN),
            max: sorted.last().copied().unwrap_or(f64::NAN),
        }
    }
}

/// Shows the median, and the range in which all values lie.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} ({:.2}–{:.2})", self.median, self.min, self.max)
    }
}

/// The value below which the part `part` (0 to 1) of the sorted numbers lies, by the nearest rank.
pub(crate) fn percentile<T: Copy>(sorted: &[T], part: f64) -> Option<T> {
    let last = sorted.len().checked_sub(1)?;
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1).min(last)).copied()
}

fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted {
        [] => f64::NAN,
        _ if sorted.len() % 2 == 1 => sorted[half],
        _ => (sorted[half - 1] + sorted[half]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_or_between_the_two_middles() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]).median, 2.0);
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).median, 2.5);
        let spread = Spread::of([5.0, 9.0, 1.0]);
        assert_eq!((spread.min, spread.max), (1.0, 9.0));
        assert!(Spread::of([]).median.is_nan());
    }

    #[test]
    fn a_percentile_is_a_number_that_was_measured() {
        let sorted: Vec<u32> = (1..=100).collect();
        assert_eq!(percentile(&sorted, 0.5), Some(50));
        assert_eq!(percentile(&sorted, 0.99), Some(99));
        assert_eq!(percentile(&sorted, 1.0), Some(100));
        assert_eq!(percentile(&[7], 0.5), Some(7));
        assert_eq!(percentile::<u32>(&[], 0.5), None);
    }
}
