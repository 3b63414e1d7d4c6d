//! Paths with large content: the hashes that stand for them, and how data servers report them to connection servers.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Address, Endpoint, HashKey, siphash24};

/// The hash that stands for a path. It is made under the cluster's [`HashKey`], and the CS program computes it from the
/// targets of requests as well. Two paths with the same hash would be taken for each other, and clients choose the
/// paths that they ask for: hence the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathHash(u64);

impl PathHash {
    /// The longest path that has a hash, bytes: what the program reads of a path, less the byte that ends it.
    pub const LONGEST: usize = Self::READ - 1;
    /// How many bytes of a path the program reads.
    const READ: usize = baton_abi::PATH_BYTES as usize;

    /// The hash of a normalised path ([`crate::Path`]); `None` if the path is too long.
    pub fn of(key: HashKey, path: &[u8]) -> Option<Self> {
        (path.len() <= Self::LONGEST).then(|| Self::of_beginning(key, path))
    }

    /// The hash of a path; for a path that is too long, the hash of as much of its beginning as the program reads.
    ///
    /// SipHash-2-4 of the path, filled up with zeros to whole words of 8 bytes, one zero at least: the word in which a
    /// path ends counts even if nothing of the path is in it. No path has a zero in it, so no two are filled up to the
    /// same.
    pub(crate) fn of_beginning(key: HashKey, path: &[u8]) -> Self {
        let mut words = [0; Self::READ];
        let seen = path.len().min(Self::READ);
        words[..seen].copy_from_slice(&path[..seen]);
        let end = ((seen / 8 + 1) * 8).min(Self::READ);
        Self(siphash24(key.words(), &words[..end]))
    }

    /// The hash as a number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<u64> for PathHash {
    fn from(hash: u64) -> Self {
        Self(hash)
    }
}

/// Which paths have large content at a data server, for all of its services.
///
/// ```text
///  of each service: address (16 bytes, IPv4 as v4-mapped) | port (2) | how many paths (4) | their hashes (8 each)
/// ```
///
/// All numbers are big-endian.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LargePaths(BTreeMap<Endpoint, BTreeSet<PathHash>>);

impl LargePaths {
    /// How many paths are sent, of all services together: as many as a connection server's program can know.
    pub const MOST: usize = baton_abi::MAX_LARGE as usize;

    /// Makes these the paths of a service. Returns true if the service had others before.
    pub fn set(&mut self, at: Endpoint, paths: BTreeSet<PathHash>) -> bool {
        self.0.get(&at) != Some(&paths) && {
            self.0.insert(at, paths);
            true
        }
    }

    /// Forgets all services except those that `serves` accepts. Returns true if there were others.
    pub fn keep(&mut self, serves: impl Fn(Endpoint) -> bool) -> bool {
        let before = self.0.len();
        self.0.retain(|at, _| serves(*at));
        self.0.len() != before
    }

    /// The paths of a service.
    pub fn of(&self, at: Endpoint) -> impl Iterator<Item = PathHash> {
        self.0.get(&at).into_iter().flatten().copied()
    }

    /// How many paths there are beyond [`LargePaths::MOST`]. They are not sent.
    pub fn left_out(&self) -> usize {
        let all: usize = self.0.values().map(BTreeSet::len).sum();
        all.saturating_sub(Self::MOST)
    }

    /// The text in which the paths are sent.
    pub fn write(&self) -> Vec<u8> {
        let (mut text, mut room) = (Vec::new(), Self::MOST);
        for (at, paths) in &self.0 {
            let told = paths.len().min(room);
            room -= told;
            text.extend(at.address.octets());
            text.extend(at.port.to_be_bytes());
            text.extend((told as u32).to_be_bytes()); // at most MOST
            let paths = paths.iter().take(told);
            text.extend(paths.flat_map(|path| path.0.to_be_bytes()));
        }
        text
    }

    /// Reads such a text; `None` if it is something else.
    pub fn read(mut text: &[u8]) -> Option<Self> {
        let (mut services, mut room) = (BTreeMap::new(), Self::MOST);
        while !text.is_empty() {
            let (address, rest) = text.split_first_chunk()?;
            let (port, rest) = rest.split_first_chunk()?;
            let (count, rest) = rest.split_first_chunk()?;
            let count = usize::try_from(u32::from_be_bytes(*count)).ok()?;
            room = room.checked_sub(count)?;
            let (hashes, rest) = rest.split_at_checked(count * size_of::<u64>())?;
            let at = Endpoint {
                address: Address::from_octets(*address),
                port: u16::from_be_bytes(*port),
            };
            let (hashes, _) = hashes.as_chunks::<8>();
            let paths = hashes
                .iter()
                .map(|hash| PathHash(u64::from_be_bytes(*hash)));
            services.insert(at, paths.collect());
            text = rest;
        }
        Some(Self(services))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> Endpoint {
        Endpoint {
            address: Address::from_octets([7; 16]),
            port,
        }
    }

    fn paths(hashes: impl IntoIterator<Item = u64>) -> BTreeSet<PathHash> {
        hashes.into_iter().map(PathHash::from).collect()
    }

    #[test]
    fn what_is_told_is_heard() {
        let mut large = LargePaths::default();
        assert!(large.set(at(80), paths([1, 0x0203_0405_0607_0809])));
        assert!(large.set(at(81), paths([])), "none is something to tell");
        assert!(!large.set(at(81), paths([])));
        let text = [
            &[7; 16][..],
            &[0, 80, 0, 0, 0, 2],
            &[0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
            &[7; 16],
            &[0, 81, 0, 0, 0, 0],
        ];
        assert_eq!(large.write(), text.concat());
        assert_eq!(LargePaths::read(&text.concat()), Some(large.clone()));
        assert_eq!(large.of(at(80)).count(), 2);
        assert!(large.keep(|at| at.port == 81) && !large.keep(|_| true));
        assert_eq!(large.of(at(80)).count(), 0);
    }

    #[test]
    fn no_more_are_told_than_can_be_known() {
        let mut large = LargePaths::default();
        let most = LargePaths::MOST as u64;
        large.set(at(80), paths(0..most - 1));
        large.set(at(81), paths(0..3));
        assert_eq!(large.left_out(), 2);
        let heard = LargePaths::read(&large.write()).unwrap();
        assert_eq!(heard.left_out(), 0);
        assert_eq!(heard.of(at(80)).count(), LargePaths::MOST - 1);
        assert_eq!(heard.of(at(81)).count(), 1);
    }

    #[test]
    fn what_is_none_is_not_heard() {
        let mut large = LargePaths::default();
        large.set(at(80), paths([1, 2]));
        let text = large.write();
        for end in 1..text.len() {
            assert_eq!(LargePaths::read(&text[..end]), None, "{end}");
        }
        let too_many = [&[7; 16][..], &[0, 80, 0xff, 0xff, 0xff, 0xff], &text].concat();
        assert_eq!(LargePaths::read(&too_many), None);
        assert_eq!(LargePaths::read(&[]), Some(LargePaths::default()));
    }

    const KEY: HashKey = HashKey::from_words([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);

    #[test]
    fn only_short_paths_have_a_hash() {
        assert!(PathHash::of(KEY, &[b'x'; PathHash::LONGEST]).is_some());
        assert_eq!(PathHash::of(KEY, &[b'x'; PathHash::LONGEST + 1]), None);
        let paths = ["/", "/a", "/b", "/1234567", "/12345678", "/12345678/"];
        for (index, path) in paths.iter().enumerate() {
            for other in &paths[..index] {
                assert_ne!(
                    PathHash::of(KEY, path.as_bytes()),
                    PathHash::of(KEY, other.as_bytes())
                );
            }
        }
    }

    #[test]
    fn under_another_key_every_path_has_another_hash() {
        for bit in 0..128 {
            let mut words = KEY.words();
            words[bit / 64] ^= 1 << (bit % 64);
            let other = HashKey::from_words(words);
            for length in 1..=PathHash::LONGEST {
                let path = vec![b'x'; length];
                assert_ne!(PathHash::of(KEY, &path), PathHash::of(other, &path));
            }
        }
    }

    /// A multiplicative hash without a key. Its steps can be undone, so collisions can be computed. These were.
    #[test]
    fn paths_that_collide_without_a_key_do_not() {
        fn unkeyed(path: &[u8]) -> u64 {
            let (words, rest) = path.as_chunks::<8>();
            assert!(rest.is_empty());
            let mix = |hash: u64, word: [u8; 8]| {
                let hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                hash ^ hash >> 32
            };
            words.iter().copied().chain([[0; 8]]).fold(0, mix)
        }
        for [one, other] in COLLIDING {
            assert_ne!(one, other);
            assert_eq!(unkeyed(one), unkeyed(other));
            for key in [KEY, HashKey::from_words([0; 2])] {
                assert_ne!(PathHash::of(key, one), PathHash::of(key, other));
            }
        }
    }

    /// The two paths of each pair have the same hash under the function in [`paths_that_collide_without_a_key_do_not`].
    const COLLIDING: [[&[u8]; 2]; 3] = [
        [b"/jebo1gx8c5genrj", b"/s8gcsj1jqz473ia"],
        [b"/wh5b99im7ntnyty", b"/zm31stlpns9sc4j"],
        [b"/a02uclgrrnpsm2w", b"/pm0urbo5bb946xr"],
    ];
}
