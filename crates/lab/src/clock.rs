//! A host's own wall clock (`own_clock` in the lab file), which can be set wrong.
//!
//! The kernel has one wall clock for all namespaces, so only the time that programs read can differ. Every
//! program that `up` starts on the host runs under Debian's libfaketime. It adds an offset, read from a file,
//! to CLOCK_REALTIME and leaves the monotonic clocks alone, as setting a clock does. A node's programs in the
//! kernel follow: they count from the monotonic clock, with an offset that the daemon gives them.
//!
//! Three things are not skewed: the kernel's own time (of files, and of `adjtimex`, which NTP clients and
//! `baton doctor` read), programs that are run by `exec`, and programs that are linked statically.

use std::path::{Path, PathBuf};

use crate::error::{Doing, Error, Result};

/// The seconds between two looks of a program at the file.
const LOOK: &str = "1";

/// The words that must precede a command so that it runs under the clock of the host with this directory.
pub(crate) fn words(directory: &Path) -> Result<Vec<String>> {
    let file = file(directory);
    if !file.exists() {
        set(directory, 0)?;
    }
    Ok(vec![
        crate::tool::find("env")?.display().to_string(),
        format!("LD_PRELOAD={}", library()?.display()),
        format!("FAKETIME_TIMESTAMP_FILE={}", file.display()),
        format!("FAKETIME_CACHE_DURATION={LOOK}"),
        "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
    ])
}

/// The path of libfaketime for programs with threads, in the directory of the machine's architecture.
pub(crate) fn library() -> Result<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten();
    let found = folders
        .filter_map(|folder| Some(folder.ok()?.path().join("faketime/libfaketimeMT.so.1")))
        .find(|path| path.exists());
    found.ok_or_else(|| Error::NotInstalled {
        program: "libfaketime".to_owned(),
        hint: "on Debian, `apt-get install libfaketime`".to_owned(),
    })
}

/// Sets the clock of the host with this directory `ahead` seconds ahead of the right time, or behind it if negative.
pub(crate) fn set(directory: &Path, ahead: i64) -> Result<()> {
    let file = file(directory);
    let doing = || format!("write {}", file.display());
    // The file is replaced as a whole, because a program may read it at any moment.
    let new = file.with_extension("new");
    std::fs::write(&new, format!("{ahead:+}\n")).doing(doing)?;
    std::fs::rename(&new, &file).doing(doing)
}

fn file(directory: &Path) -> PathBuf {
    directory.join("clock")
}
