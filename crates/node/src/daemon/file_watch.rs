//! Watching the configuration file: it is read again and again to find out whether it has changed and is complete.

use std::{path::Path, time::Duration};

/// The time between two looks at the file.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// What was seen of a file. This is its whole content, because a change need not show in the file's time or length:
/// a file that is copied with its time, or reached by another symbolic link, may have the same ones.
#[derive(Default)]
pub struct Watch {
    seen: Option<Vec<u8>>,
    applied: Option<Vec<u8>>,
}

impl Watch {
    /// Begins with the file as it is, and takes that for the configuration that was read.
    pub fn begin(file: &Path) -> Self {
        let content = std::fs::read(file).ok();
        Self {
            seen: content.clone(),
            applied: content,
        }
    }

    /// Whether the file differs from the one applied last and is the same as at the last look, so that whoever writes
    /// it has finished. Each change is reported once, whether its content is valid or not.
    pub fn changed(&mut self, file: &Path) -> bool {
        let now = std::fs::read(file).ok();
        let at_rest = now.is_some() && now == self.seen;
        let is_news = at_rest && now != self.applied;
        if is_news {
            self.applied.clone_from(&now);
        }
        self.seen = now;
        is_news
    }
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
        // Another file of the same length and time.
        let (other, when) = (directory.path().join("other"), file.metadata());
        std::fs::write(&other, "xyz").expect("room");
        let opened = std::fs::File::options().write(true).open(&other);
        let set = opened.and_then(|opened| opened.set_modified(when?.modified()?));
        set.expect("it is ours");
        std::fs::remove_file(&file).expect("it is there");
        std::os::unix::fs::symlink(&other, &file).expect("room");
        assert!(!watch.changed(&file));
        assert!(watch.changed(&file));
    }
}
