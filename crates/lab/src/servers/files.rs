//! The files that every server serves: the same bytes on every host and every machine.
//!
//! `/N` is the first N bytes of one pseudorandom stream, so any part of any answer can be checked
//! without a copy of the file.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use crate::error::{Doing, Error, Result};
use crate::{state, tool};

/// The directory of what is kept between labs, because making it takes long.
pub(crate) const CACHE: &str = "/var/tmp/baton-lab";

/// The names of the files, and their sizes in bytes.
pub const FILES: [(&str, u64); 7] = [
    ("empty", 0),
    ("1b", 1),
    ("4k", 4 << 10),
    ("64k", 64 << 10),
    ("1m", 1 << 20),
    ("64m", 64 << 20),
    ("256m", 256 << 20),
];

/// The SHA-256 digests that the files must have, in the format of `sha256sum`.
pub const SUMS: &str = include_str!("SHA256SUMS");

/// The directory in which the files are once [`ensure`] has returned.
pub(crate) fn directory() -> PathBuf {
    Path::new(CACHE).join("files")
}

/// The path that a file has while a lab with servers is up; `None` if [`FILES`] has no such name.
pub fn file(name: &str) -> Option<PathBuf> {
    let known = FILES.iter().any(|(known, _)| *known == name);
    known.then(|| directory().join(name))
}

/// Makes the files unless they are there. Each file is checked against its digest when it is made. Later
/// only its size is checked, and that the list of digests was written after it.
pub(crate) fn ensure(progress: &mut dyn FnMut(&str)) -> Result<()> {
    let _lock = state::Lock::take(&Path::new(CACHE).join("lock"), progress)?;
    let directory = directory();
    if are_there(&directory) {
        return Ok(());
    }
    progress("making the files that the servers serve (once, 320 MB in /var/tmp/baton-lab)");
    std::fs::create_dir_all(&directory).doing(|| format!("make {}", directory.display()))?;
    for (name, size) in FILES {
        let path = directory.join(name);
        generate(&path, size).doing(|| format!("write {}", path.display()))?;
    }
    let mut check = tool::tool("sha256sum", ["--check", "--strict", "--quiet"])?;
    check.current_dir(&directory);
    tool::finish(check, Some(SUMS)).map_err(|error| Error::Files {
        path: directory.clone(),
        why: error.to_string(),
    })?;
    let sums = directory.join("SHA256SUMS");
    std::fs::write(&sums, SUMS).doing(|| format!("write {}", sums.display()))
}

fn are_there(directory: &Path) -> bool {
    let sums = directory.join("SHA256SUMS");
    let Ok(completed) = sums.metadata().and_then(|meta| meta.modified()) else {
        return false;
    };
    std::fs::read_to_string(&sums).is_ok_and(|text| text == SUMS)
        && FILES.iter().all(|(name, size)| {
            directory.join(name).metadata().is_ok_and(|meta| {
                meta.len() == *size && meta.modified().is_ok_and(|changed| changed <= completed)
            })
        })
}

fn generate(path: &Path, size: u64) -> std::io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut left = size;
    for block in Stream::new() {
        let take = left.min(block.len() as u64);
        file.write_all(&block[..take as usize])?; // at most the block's 8 bytes
        left -= take;
        if left == 0 {
            break;
        }
    }
    file.flush()
}

/// The stream of bytes: SplitMix64 (Steele, Lea, Flood 2014), seed 0, little-endian.
struct Stream {
    state: u64,
}

impl Stream {
    fn new() -> Stream {
        Stream { state: 0 }
    }
}

impl Iterator for Stream {
    type Item = [u8; 8];

    fn next(&mut self) -> Option<[u8; 8]> {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some((z ^ (z >> 31)).to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_splitmix64() {
        // The reference implementation's first values for seed 0: https://prng.di.unimi.it/splitmix64.c
        let first: Vec<u64> = Stream::new().take(3).map(u64::from_le_bytes).collect();
        let reference = [
            0xe220_a839_7b1d_cdaf,
            0x6e78_9e6a_a1b9_65f4,
            0x06c4_5d18_8009_454f,
        ];
        assert_eq!(first, reference);
    }

    #[test]
    fn sizes_are_exact() -> std::io::Result<()> {
        let directory = tempfile::tempdir()?;
        for size in [0, 1, 7, 8, 9, 4096] {
            let path = directory.path().join("file");
            generate(&path, size)?;
            assert_eq!(path.metadata()?.len(), size);
        }
        Ok(())
    }

    #[test]
    fn every_file_has_a_digest() {
        let listed: Vec<&str> = SUMS
            .lines()
            .filter_map(|line| line.split("  ").nth(1))
            .collect();
        assert_eq!(listed, FILES.map(|(name, _)| name));
    }
}
