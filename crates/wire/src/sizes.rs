//! SIZES: which paths of a service are large at its sender, in as many messages as they need.

use baton_abi::{LCCP_MAX_BODY, LccpSizes};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::{Address, Endpoint, HashKey, siphash24};

/// What a path is known by: a hash under the cluster's [`HashKey`], which the CS program makes of requests' targets as
/// well. Two paths of one hash would be taken for each other, and clients choose the paths that they ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathHash(u64);

impl PathHash {
    /// The longest path that has one, bytes: what the program reads of one, less the sign that ends it.
    pub const LONGEST: usize = Self::READ - 1;
    /// What the program reads of a path, bytes.
    const READ: usize = baton_abi::PATH_BYTES as usize;

    /// Of a path in its one spelling ([`crate::Path`]); `None` of one that is too long.
    pub fn of(key: HashKey, path: &[u8]) -> Option<Self> {
        (path.len() <= Self::LONGEST).then(|| Self::of_beginning(key, path))
    }

    /// The same; of a path that is too long the hash of its beginning, as far as the program reads one.
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

/// One part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Of which service.
    pub cluster: Endpoint,
    /// Which list; another one replaces it as a whole.
    pub generation: u64,
    part: u16,
    parts: u16,
    paths: Vec<PathHash>,
}

impl Sizes {
    /// How many paths one message holds: what fits `LCCP_MAX_BODY`.
    pub const PATHS: usize = (LCCP_MAX_BODY as usize - size_of::<LccpSizes>()) / size_of::<u64>();
    /// How many parts a list has at most. Paths beyond are left out.
    pub const PARTS: usize = 64;

    /// The list as messages: one at least, so that an empty list can be told.
    pub fn parts(cluster: Endpoint, generation: u64, paths: &[PathHash]) -> Vec<Self> {
        let chunks: Vec<&[PathHash]> = match paths {
            [] => vec![&[]],
            some => some.chunks(Self::PATHS).take(Self::PARTS).collect(),
        };
        let parts = chunks.len() as u16; // at most PARTS
        (0..parts)
            .zip(chunks)
            .map(|(part, paths)| Self {
                cluster,
                generation,
                part,
                parts,
                paths: paths.to_vec(),
            })
            .collect()
    }

    /// Which part of the list it is, from 0, always less than [`Sizes::of`].
    pub const fn part(&self) -> u16 {
        self.part
    }

    /// How many parts the list has, 1 to [`Sizes::PARTS`].
    pub const fn of(&self) -> u16 {
        self.parts
    }

    /// The paths of this part.
    pub fn paths(&self) -> &[PathHash] {
        &self.paths
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let head = LccpSizes {
            cluster: self.cluster.address.octets(),
            be_generation: self.generation.to_be(),
            be_port: self.cluster.port.to_be(),
            be_part: self.part.to_be(),
            be_parts: self.parts.to_be(),
            be_paths: (self.paths.len() as u16).to_be(), // at most PATHS
        };
        let mut body = head.as_bytes().to_vec();
        body.extend(self.paths.iter().flat_map(|path| path.0.to_be_bytes()));
        body
    }

    /// `None` if the body is not what it says. Bytes behind the last path are ignored.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let (head, rest) = LccpSizes::read_from_prefix(body).ok()?;
        let (part, parts) = (u16::from_be(head.be_part), u16::from_be(head.be_parts));
        let count = usize::from(u16::from_be(head.be_paths));
        let (paths, _) = rest.as_chunks::<8>();
        let makes_sense = part < parts && usize::from(parts) <= Self::PARTS && count <= Self::PATHS;
        let paths = paths.get(..count).filter(|_| makes_sense)?;
        Some(Self {
            cluster: Endpoint {
                address: Address::from_octets(head.cluster),
                port: u16::from_be(head.be_port),
            },
            generation: u64::from_be(head.be_generation),
            part,
            parts,
            paths: paths
                .iter()
                .map(|path| PathHash(u64::from_be_bytes(*path)))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> Endpoint {
        Endpoint {
            address: Address::from_octets([7; 16]),
            port: 80,
        }
    }

    #[test]
    fn parts_hold_every_path_and_fit() {
        for count in [0, 1, Sizes::PATHS, Sizes::PATHS + 1, 5 * Sizes::PATHS] {
            let paths: Vec<PathHash> = (0..count as u64).map(PathHash::from).collect();
            let parts = Sizes::parts(at(), 9, &paths);
            let together: Vec<PathHash> = parts.iter().flat_map(Sizes::paths).copied().collect();
            assert_eq!(together, paths);
            for (number, part) in parts.iter().enumerate() {
                assert!(part.write().len() <= LCCP_MAX_BODY as usize);
                assert_eq!(
                    (usize::from(part.part()), usize::from(part.of())),
                    (number, parts.len())
                );
                assert_eq!(Sizes::read(&part.write()).as_ref(), Some(part));
            }
        }
        let too_many = vec![PathHash::from(1); (Sizes::PARTS + 1) * Sizes::PATHS];
        assert_eq!(Sizes::parts(at(), 9, &too_many).len(), Sizes::PARTS);
    }

    #[test]
    fn what_is_no_part_is_none() {
        let part = Sizes::parts(at(), 9, &[PathHash::from(1)]).remove(0);
        let body = part.write();
        assert_eq!(Sizes::read(&body[..body.len() - 1]), None);
        assert_eq!(Sizes::read(&[]), None);
        for (part, parts) in [(1, 1), (0, 0), (0, 65)] {
            let wrong = Sizes {
                part,
                parts,
                ..part_of(&body)
            };
            assert_eq!(Sizes::read(&wrong.write()), None, "{part} of {parts}");
        }
    }

    fn part_of(body: &[u8]) -> Sizes {
        Sizes::read(body).unwrap()
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

    /// A multiplicative hash without a key, which is what baton once had: its steps can be undone, so that collisions
    /// can be computed. These did.
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

    /// Each two have one hash as [`paths_that_collide_without_a_key_do_not`] makes it.
    const COLLIDING: [[&[u8]; 2]; 3] = [
        [b"/jebo1gx8c5genrj", b"/s8gcsj1jqz473ia"],
        [b"/wh5b99im7ntnyty", b"/zm31stlpns9sc4j"],
        [b"/a02uclgrrnpsm2w", b"/pm0urbo5bb946xr"],
    ];
}
