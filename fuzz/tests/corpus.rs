//! Runs every fuzz target on the inputs that are kept, and on inputs that are made from these. No fuzzer is involved,
//! and the inputs are the same each time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, path::Path};

use baton_fuzz::{TARGETS, Target};
use fastrand::Rng;

/// The number of inputs that are made for each target. `config` gets fewer, because its inputs are whole files.
const MADE: usize = 40_000;
const MADE_OF_CONFIG: usize = 1000;
/// The longest input, as in `fuzz/run`.
const LONGEST: usize = 2048;

/// Bytes that mean something to one parser or another.
const TELLING: [&[u8]; 8] = [
    b"\r\n",
    b"\n",
    b"\0",
    b"\xff",
    b"%2f",
    b"HTTP/1.1\r\n",
    b"Content-Length: 1\r\n",
    b"Transfer-Encoding: chunked\r\n",
];

/// Prints the input if the target panics.
struct Input<'a>(&'a str, &'a [u8]);

impl Drop for Input<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{} fails on b\"{}\"", self.0, self.1.escape_ascii());
        }
    }
}

fn run(name: &str, target: Target, bytes: &[u8]) {
    let input = Input(name, bytes);
    target(input.1);
}

/// The kept inputs of a target, in the order of their names, so that the inputs made from them are always the same.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let mut files: Vec<_> = fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// Changes an input in a few places, as a fuzzer does.
fn change(rng: &mut Rng, bytes: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    for _ in 0..rng.usize(1..=4) {
        let at = rng.usize(0..=bytes.len());
        let end = (at + rng.usize(0..=16)).min(bytes.len());
        match rng.u8(0..7) {
            0 if at < end => bytes[at] ^= 1 << rng.u8(0..8),
            1 if at < end => bytes[at] = rng.u8(..),
            2 => drop(bytes.drain(at..end)),
            3 => bytes.truncate(at),
            4 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            5 => {
                let telling = TELLING[rng.usize(0..TELLING.len())];
                bytes.splice(at..at, telling.iter().copied());
            }
            _ => {
                let other = &corpus[rng.usize(0..corpus.len())];
                let from = rng.usize(0..=other.len());
                bytes.truncate(at);
                bytes.extend(&other[from..]);
            }
        }
    }
    bytes.truncate(LONGEST);
}

#[test]
fn all_targets() {
    for (name, target) in TARGETS {
        let corpus = corpus(name);
        assert!(!corpus.is_empty(), "{name}");
        for bytes in &corpus {
            run(name, target, bytes);
        }
        let made = if name == "config" {
            MADE_OF_CONFIG
        } else {
            MADE
        };
        let mut rng = Rng::with_seed(1);
        for _ in 0..made {
            let mut bytes = corpus[rng.usize(0..corpus.len())].clone();
            change(&mut rng, &mut bytes, &corpus);
            run(name, target, &bytes);
        }
    }
}
