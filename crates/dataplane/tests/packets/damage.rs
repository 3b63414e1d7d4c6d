//! Random damage to frames.

use fastrand::Rng;

use crate::{
    cluster::key,
    lccp::{INNER, LCCP, tag_again},
    options::{self, linux},
    segment::{IP, TCP, padded},
};

/// The length of the shortest frame that a test run takes.
const SHORTEST: usize = 34;
/// The length of the longest frame that a test run takes.
const LONGEST: usize = 3000;

/// Returns one of the seeds with a few of its bytes, its length or its tail changed.
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
                // A bit in the headers matters more than others.
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

/// Writes a right tag over whatever stands where the header should be, so that the code behind the check of the tag
/// is tested as well.
fn reseal(frame: &mut [u8]) {
    if frame.len() >= INNER {
        tag_again(frame, &key().lccp());
    }
}

/// Writes bytes of another seed over bytes of this frame, or inserts them.
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

/// Sets the length in the IP header: to the right one, so that the programs read what follows, or to nearly the right
/// one.
fn set_length(random: &mut Rng, frame: &mut [u8]) {
    let right = (frame.len() - IP) as u16;
    let length = right.wrapping_add_signed(random.i16(-2..=1) * i16::from(random.bool()));
    frame[IP + 2..IP + 4].copy_from_slice(&length.to_be_bytes());
}

/// Returns a byte that is often one of those that TCP options have.
pub fn option_byte(random: &mut Rng) -> u8 {
    if random.u8(..4) == 0 {
        return random.u8(..);
    }
    let known = options::join([&linux(1)[..], &options::END, &options::NOP]);
    *random.choice(&known).unwrap()
}
