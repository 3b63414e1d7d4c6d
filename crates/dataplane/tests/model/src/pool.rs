//! Which data servers may answer what.

use crate::cluster::{HTTP_SERVICE, first_pool_of_one};

/// How many data servers there are.
pub const SERVERS: usize = 3;

/// A pool, by the paths that lead to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// `/a/`: one data server.
    A,
    /// `/b/`: the other two, in turns.
    B,
    /// Everything else: all of them.
    Rest,
}

pub const POOLS: [Pool; 3] = [Pool::A, Pool::B, Pool::Rest];

impl Pool {
    pub fn of_path(path: &[u8]) -> Self {
        match path {
            [b'/', b'a', b'/', ..] => Self::A,
            [b'/', b'b', b'/', ..] => Self::B,
            _ => Self::Rest,
        }
    }

    pub fn path(self) -> &'static str {
        match self {
            Self::A => "/a/",
            Self::B => "/b/",
            Self::Rest => "/c/",
        }
    }

    pub fn members(self) -> &'static [u16] {
        match self {
            Self::A => &[0],
            Self::B => &[1, 2],
            Self::Rest => &[0, 1, 2],
        }
    }

    /// Whether this data server may answer requests for this pool.
    pub fn has(self, server: usize) -> bool {
        self.members()
            .iter()
            .any(|&member| usize::from(member) == server)
    }

    /// Its index in the maps.
    pub fn index(self) -> u16 {
        match self {
            Self::A => first_pool_of_one(),
            Self::B => first_pool_of_one() + 1,
            Self::Rest => HTTP_SERVICE,
        }
    }
}
