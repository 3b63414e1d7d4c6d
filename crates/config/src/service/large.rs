//! `[service.large]`: the pool for large content.

use std::path::PathBuf;

use crate::reading::schema::keys;
use crate::reading::value::{text, value};
use crate::sections::local::absolute;
use crate::values::name::PoolName;
use crate::values::size::size;

/// Which content counts as large, and the pool that serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Large {
    /// The index of the pool in the service's `pools`.
    pub pool: usize,
    /// Files of more bytes than this are large.
    pub larger_than: u64,
    /// The absolute path of the directory on each data server whose files the paths of requests name.
    pub root: PathBuf,
}

keys! {
    /// Large content can have data servers of its own: a request goes to this pool if no route (below) takes it and its
    /// path is that of a large file below `root`. Each data server of the service looks at its files every five seconds
    /// and tells the connection servers. A path is large if its file is large on any of them. At most 7936 large files
    /// of a data server count, and 16384 in all, with paths of up to 119 bytes, in which blanks, control characters, %,
    /// ? and # count as three.
    Keys "[service.large]", lacks "large has no" {
        /// a pool of this service
        pool: PoolName = text, required "\"…\", the name of a [[service.pool]] of this service", example "images";
        /// a whole number of B, kB, MB, GB, KiB, MiB or GiB
        larger_than: u64 = value(size), required "\"1MiB\"", example "1MiB";
        /// where the files are on each data server
        root: PathBuf = value(absolute),
            required "\"/var/www/html\", where each data server's files are", example "/var/www/html";
    }
}

impl Keys {
    /// The settings, if all of them could be read; `pool` is the index of the pool it names.
    pub(crate) fn finish(self, pool: Option<usize>) -> Option<Large> {
        Some(Large {
            pool: pool?,
            larger_than: self.larger_than.value()?,
            root: self.root.value()?,
        })
    }
}
