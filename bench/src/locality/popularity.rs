//! Chooses the document that is asked for next.

/// The popularity of documents by rank: the k-th is asked for in proportion to 1/k to some power (Zipf), and one
/// document is hot in addition.
#[derive(Clone, Debug)]
pub(super) struct Popularity {
    /// For each document, the part of requests that is for it or for those before it. The numbers ascend.
    upto: Vec<f64>,
}

impl Popularity {
    /// Makes the popularity of so many documents. Document 0 gets the part `hot` of all requests, besides what its
    /// rank gives it.
    pub fn new(documents: usize, zipf: f64, hot: f64) -> Popularity {
        let mut sum = 0.0;
        let mut upto: Vec<f64> = (1..=documents)
            .map(|rank| {
                sum += (rank as f64).powf(-zipf);
                sum
            })
            .collect();
        upto.iter_mut()
            .for_each(|part| *part = hot + (1.0 - hot) * *part / sum);
        Popularity { upto }
    }

    /// The document for a random number from 0 to 1.
    pub fn document(&self, drawn: f64) -> usize {
        let last = self.upto.len().saturating_sub(1);
        self.upto.partition_point(|part| *part < drawn).min(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    const DRAWS: u32 = 100_000;

    fn parts(popularity: &Popularity) -> [f64; 3] {
        let mut chance = Chance::new(1);
        let mut counts = [0; 3];
        (0..DRAWS).for_each(|_| counts[popularity.document(chance.part())] += 1);
        counts.map(|count| f64::from(count) / f64::from(DRAWS))
    }

    fn assert_near(parts: [f64; 3], expected: [f64; 3]) {
        // The limit is five standard deviations of a share at most: 5 * sqrt(0.25 / DRAWS).
        let near = |(one, other): (&f64, &f64)| (one - other).abs() < 0.008;
        assert!(parts.iter().zip(&expected).all(near), "{parts:?}");
    }

    #[test]
    fn the_second_is_asked_for_half_as_often() {
        let sum = 1.0 + 1.0 / 2.0 + 1.0 / 3.0;
        let expected = [1.0 / sum, 1.0 / 2.0 / sum, 1.0 / 3.0 / sum];
        assert_near(parts(&Popularity::new(3, 1.0, 0.0)), expected);
    }

    #[test]
    fn the_hot_one_has_its_part_and_its_rank() {
        let expected = [0.4 + 0.2, 0.2, 0.2];
        assert_near(parts(&Popularity::new(3, 0.0, 0.4)), expected);
    }
}
