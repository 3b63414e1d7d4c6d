//! The configuration file, looked at again and again: has it changed, and is it at rest?

use std::{
    path::Path,
    time::{Duration, SystemTime},
};

/// Between two looks.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// What was seen of a file.
#[derive(Default)]
pub struct Watch {
    seen: Option<Stamp>,
    applied: Option<Stamp>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    bytes: u64,
}

impl Watch {
    /// Begins with the file as it is: that is what was read.
    pub fn begin(file: &Path) -> Self {
        let stamp = stamp(file);
        Self {
            seen: stamp,
            applied: stamp,
        }
    }

    /// Whether the file is another than the one applied last, and the same as a look ago: whoever writes
    /// it has finished. Each change is told once, right or wrong.
    pub fn changed(&mut self, file: &Path) -> bool {
        let now = stamp(file);
        let at_rest = now.is_some() && now == self.seen;
        self.seen = now;
        if !at_rest || now == self.applied {
            return false;
        }
        self.applied = now;
        true
    }
}

fn stamp(file: &Path) -> Option<Stamp> {
    let about = std::fs::metadata(file).ok()?;
    Some(Stamp {
        modified: about.modified().ok()?,
        bytes: about.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_once_and_only_at_rest() {
        let directory = tempfile::tempdir().expect("a place for files");
        let file = directory.path().join("baton.toml");
        std::fs::write(&file, "a").expect("room");
        let mut watch = Watch::begin(&file);
        assert!(!watch.changed(&file));
        std::fs::write(&file, "ab").expect("room");
        assert!(!watch.changed(&file), "it may still be written");
        assert!(watch.changed(&file));
        assert!(!watch.changed(&file));
        std::fs::remove_file(&file).expect("it is there");
        assert!(
            !watch.changed(&file) && !watch.changed(&file),
            "gone is no change"
        );
        std::fs::write(&file, "abc").expect("room");
        assert!(!watch.changed(&file));
        assert!(watch.changed(&file));
    }
}
