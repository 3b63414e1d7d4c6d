//! Finds the large files of a document root, by a walk that is repeated every few seconds.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use baton_wire::{HashKey, Path as RequestPath, PathHash};

/// How many files and directories one walk looks at, at most.
const MOST: usize = 200_000;
/// How many levels of directories a walk reads at most, including the root.
const DEEPEST: usize = 32;

/// What one walk found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The hashed paths of files that are larger than the limit.
    pub large: BTreeSet<PathHash>,
    /// The number of large files whose path is too long to be told.
    pub too_long: usize,
    /// Whether the walk stopped early, because the tree has more files or levels than one walk looks at.
    pub cut_off: bool,
}

/// Walks the files below `root` and finds those larger than `larger_than` bytes. Their paths are hashed under `key`.
/// Symbolic links to files count as files. Links to directories are not followed, because they may form loops.
pub fn walk(root: &Path, larger_than: u64, key: HashKey) -> Result<Found> {
    walk_at_most(root, larger_than, key, MOST)
}

fn walk_at_most(root: &Path, larger_than: u64, key: HashKey, most: usize) -> Result<Found> {
    let mut found = Found::default();
    let mut left = most;
    // The root itself must be readable. A file that disappears during the walk is no error.
    std::fs::read_dir(root).with_context(|| format!("cannot read {}", root.display()))?;
    let mut directories: Vec<Vec<OsString>> = vec![Vec::new()];
    while let Some(names) = directories.pop() {
        let here: std::path::PathBuf = std::iter::once(root.as_os_str())
            .chain(names.iter().map(OsString::as_os_str))
            .collect();
        for entry in std::fs::read_dir(&here).into_iter().flatten().flatten() {
            if left == 0 {
                found.cut_off = true;
                return Ok(found);
            }
            left -= 1;
            let names = || {
                let own = names.iter().cloned().chain([entry.file_name()]);
                own.collect::<Vec<_>>()
            };
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if names().len() < DEEPEST {
                    directories.push(names());
                } else {
                    found.cut_off = true;
                }
                continue;
            }
            let is_large = std::fs::metadata(entry.path())
                .is_ok_and(|file| file.is_file() && file.len() > larger_than);
            if is_large {
                let names = names();
                let path = RequestPath::of_names(names.iter().map(|name| name.as_bytes()));
                match PathHash::of(key, path.as_bytes()) {
                    Some(hash) => drop(found.large.insert(hash)),
                    None => found.too_long += 1,
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: HashKey = HashKey::from_words([1, 2]);
    const OTHER: HashKey = HashKey::from_words([1, 3]);

    fn hash(path: &str) -> PathHash {
        PathHash::of(KEY, path.as_bytes()).expect("a short path")
    }

    #[test]
    fn finds_what_is_larger() -> Result<()> {
        let root = tempfile::tempdir()?;
        let at = |name: &str| root.path().join(name);
        std::fs::create_dir_all(at("films/of 2026"))?;
        std::fs::write(at("small"), [0; 10])?;
        std::fs::write(at("large"), [0; 11])?;
        std::fs::write(at("films/of 2026/a"), [0; 100])?;
        std::os::unix::fs::symlink(at("large"), at("link"))?;
        std::os::unix::fs::symlink(at("films"), at("films/round"))?;
        std::fs::write(at(&"x".repeat(200)), [0; 100])?;
        let found = walk(root.path(), 10, KEY)?;
        let expected = ["/large", "/films/of%202026/a", "/link"].map(hash);
        assert_eq!(found.large, BTreeSet::from(expected));
        assert_eq!((found.too_long, found.cut_off), (1, false));
        assert!(
            found
                .large
                .is_disjoint(&walk(root.path(), 10, OTHER)?.large)
        );
        assert!(walk(&at("nowhere"), 10, KEY).is_err());
        assert!(walk_at_most(root.path(), 10, KEY, 3)?.cut_off);
        Ok(())
    }
}
