//! The requests of a support site's users: mostly pages, sometimes a download.
//!
//! Downloads have the sizes of SPECweb2005's Support fileset (its design document, six classes). The frequencies of
//! pages and of each class are chosen so that the mean request has as many bytes as in the paper: 930 Mbit/s at 252
//! requests a second are 461 KB (tables 5 and 6). All sizes and times are then divided by ten, because the paper's five
//! minutes are half a minute here: see [`SCALE`].

use std::time::Duration;

use crate::chance::Chance;

/// The scale: one second here stands for ten of the paper's, and one byte for ten. Rates of bytes stay the same, and
/// all times that follow from them shrink. Times that the kernel fixes do not shrink: the 200 ms of a retransmission
/// timer, a round trip.
pub(super) const SCALE: u64 = 10;

/// The thousands of bytes of a page with its images, before [`SCALE`].
const PAGES: [u64; 4] = [10, 30, 50, 100];
/// The part of requests that are downloads.
const DOWNLOADS: f64 = 0.06;
/// The classes of downloads: the part of downloads that are of the class, and the sizes of its files in bytes.
const CLASSES: [(f64, &[u64]); 6] = [
    (0.137, &[104_858, 209_716, 314_574, 419_432, 524_290]),
    (0.126, &[629_146, 754_975, 880_804]),
    (0.284, &[1_048_576, 1_541_407, 2_034_238, 2_527_069]),
    (0.223, &[4_194_304, 5_546_967]),
    (0.125, &[9_992_929]),
    (0.105, &[37_748_736]),
];
/// The mean time for which users think, before [`SCALE`]. They never think longer than [`LONGEST`] times that.
const THINKING: Duration = Duration::from_secs(10);
const LONGEST: f64 = 5.0;

/// The next request of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub bytes: u64,
    /// Whether the request is a download, after which the user leaves.
    pub is_download: bool,
}

/// Draws a random request.
pub(super) fn request(chance: &mut Chance) -> Request {
    let is_download = chance.part() < DOWNLOADS;
    let bytes = if is_download {
        one_of(class(chance.part()), chance)
    } else {
        one_of(&PAGES, chance) * 1000
    };
    Request {
        bytes: bytes / SCALE,
        is_download,
    }
}

/// Draws how long a user thinks before the next request. The time is exponentially distributed.
pub(super) fn thinking(chance: &mut Chance) -> Duration {
    let means = -(1.0 - chance.part()).ln();
    THINKING.mul_f64(means.min(LONGEST)) / SCALE as u32
}

fn one_of(sizes: &[u64], chance: &mut Chance) -> u64 {
    let at = (chance.part() * sizes.len() as f64) as usize;
    sizes[at.min(sizes.len() - 1)] // no class is empty
}

fn class(drawn: f64) -> &'static [u64] {
    let mut upto = 0.0;
    for (part, sizes) in CLASSES {
        upto += part;
        if drawn < upto {
            return sizes;
        }
    }
    CLASSES[CLASSES.len() - 1].1 // parts sum up to 1, but for rounding
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(sizes: &[u64]) -> f64 {
        sizes.iter().sum::<u64>() as f64 / sizes.len() as f64
    }

    #[test]
    fn a_request_has_as_many_bytes_as_in_the_paper() {
        let downloads: f64 = CLASSES.iter().map(|(part, sizes)| part * mean(sizes)).sum();
        let all = DOWNLOADS * downloads + (1.0 - DOWNLOADS) * mean(&PAGES) * 1000.0;
        assert!((440e3..480e3).contains(&all), "{all}");
        let parts: f64 = CLASSES.iter().map(|(part, _)| part).sum();
        assert!((parts - 1.0).abs() < 1e-9, "{parts}");
    }

    #[test]
    fn what_is_drawn_is_so_on_average() {
        let mut chance = Chance::new(1);
        let draws = 200_000;
        let bytes: u64 = (0..draws).map(|_| request(&mut chance).bytes).sum();
        let bytes = bytes as f64 / f64::from(draws);
        assert!((42e3..50e3).contains(&bytes), "{bytes}");
        let time: Duration = (0..draws).map(|_| thinking(&mut chance)).sum();
        let time = time.as_secs_f64() / f64::from(draws);
        assert!((0.97..1.02).contains(&time), "{time}");
    }
}
