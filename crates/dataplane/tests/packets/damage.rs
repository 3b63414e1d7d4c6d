//! Random damage to frames.

use fastrand::Rng;

use crate::{
    cluster::key,
    lccp::{INNER, LCCP, tag_again},
    options::{self, linux},
    segment::{IP, TCP, padded},
};

/// A test run takes no shorter frame.
const SHORTEST: usize = 34;
/// Nor a longer one.
const LONGEST: usize = 3000;

/// One of the seeds with a few of its bytes, its length or its tail changed.
pub fn broken(random: &mut Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut frame = random.choice(seeds).unwrap().clone();
    for _ in 0..random.u8(..4) {
        match random.u8(..8) {
            0 => frame.truncate(random.usize(SHORTEST..=frame.len())),
            1 => {
                let bytes = random.usize(..64);
                frame = padded(frame, bytes);
            }
            2 => splice(random, &mut frame, seeds),
            3 => set_length(random, &mut frame),
            4 => {
                let at = random.usize(..frame.len());
                frame[at] = *random
                    .choice(&[0, 1, 0x7f, 0x80, 0xff, 253, 6, 0x45])
                    .unwrap();
            }
            5 => {
                // Where the headers are, a bit counts for more.
                let at = random.usize(IP..frame.len().min(TCP + 20));
                frame[at] ^= 1 << random.u8(..8);
            }
            6 if frame.len() > INNER => {
                let at = random.usize(LCCP..INNER);
                frame[at] ^= 1 << random.u8(..8);
            }
            _ => {
                let at = random.usize(..frame.len());
                frame[at] ^= 1 << random.u8(..8);
            }
        }
    }
    frame.truncate(LONGEST);
    if random.bool() {
        reseal(&mut frame);
    }
    frame
}

/// A right tag over whatever is where the header should be: what is behind the tag must hold as well.
fn reseal(frame: &mut [u8]) {
    if frame.len() >= INNER {
        tag_again(frame, &key().lccp());
    }
}

/// Bytes of another seed over, or in between, those of this.
fn splice(random: &mut Rng, frame: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    let other = random.choice(seeds).unwrap();
    let from = random.usize(..other.len());
    let to = random.usize(from..=other.len());
    let at = random.usize(SHORTEST..=frame.len());
    if random.bool() {
        frame.splice(at..at, other[from..to].iter().copied());
    } else {
        let end = frame.len().min(at + to - from);
        frame.splice(at..end, other[from..to].iter().copied());
    }
}

/// The IP header's length: right, so that what follows is looked at, or nearly.
fn set_length(random: &mut Rng, frame: &mut [u8]) {
    let right = (frame.len() - IP) as u16;
    let length = right.wrapping_add_signed(random.i16(-2..=1) * i16::from(random.bool()));
    frame[IP + 2..IP + 4].copy_from_slice(&length.to_be_bytes());
}

/// A byte as options have them.
pub fn option_byte(random: &mut Rng) -> u8 {
    if random.u8(..4) == 0 {
        return random.u8(..);
    }
    let known = options::join([&linux(1)[..], &options::END, &options::NOP]);
    *random.choice(&known).unwrap()
}
