//! The journal's file: JSON, replaced as a whole, on disk when `save` returns.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Step;
use crate::{Error, Result};

const VERSION: u32 = 1;

#[derive(Deserialize)]
struct Journal {
    version: u32,
    boot: String,
    steps: Vec<Step>,
}

#[derive(Serialize)]
struct JournalRef<'a, S> {
    version: u32,
    boot: &'a str,
    steps: &'a [S],
}

/// The steps in the file; none if there is no file or it is of an earlier boot.
pub(super) fn load(path: &Path) -> Result<Vec<Step>> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::system(format!("read {}", path.display()))(error)),
    };
    let wrong = |reason: String| Error::Journal {
        path: path.to_owned(),
        reason,
    };
    let journal: Journal =
        serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    if journal.version != VERSION {
        return Err(wrong(format!(
            "it has version {} instead of {VERSION}",
            journal.version
        )));
    }
    if journal.boot != boot()? {
        return Ok(Vec::new());
    }
    Ok(journal.steps)
}

/// Replaces the file, or removes it if there are no steps. A reader, or the next start after a crash at any moment,
/// finds either the old content or the new one.
pub(super) fn save<S: Serialize>(path: &Path, steps: &[S]) -> Result<()> {
    let boot = boot()?;
    let journal = JournalRef {
        version: VERSION,
        boot: &boot,
        steps,
    };
    write(path, &journal, steps.is_empty()).map_err(Error::system(format!(
        "write the journal {}",
        path.display()
    )))
}

fn write(path: &Path, journal: &impl Serialize, empty: bool) -> io::Result<()> {
    let dir = path
        .parent()
        .filter(|dir| !dir.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    if empty {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => return File::open(dir)?.sync_all(),
        }
    }
    let temporary = path.with_added_extension("new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)?;
    let mut text = serde_json::to_vec_pretty(journal)?;
    text.push(b'\n');
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(dir)?.sync_all()
}

/// The kernel's identifier of the current boot.
fn boot() -> Result<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    Ok(id
        .map_err(Error::system("read the boot id"))?
        .trim()
        .to_owned())
}
