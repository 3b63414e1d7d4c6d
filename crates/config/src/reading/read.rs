//! The one place that reads files: the configuration and the key files it names.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The text of a configuration and where it came from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The path of the file. Every finding names it, and a relative `key_file` starts from its directory.
    pub path: &'a Path,
    /// The TOML text.
    pub text: &'a str,
    /// The permission bits of the file; `None` if the text is from no file. Who can read it can read a key in it.
    pub mode: Option<u32>,
}

/// The content of a key file, and who may read it.
#[derive(Clone, Debug)]
pub struct KeyFile {
    /// The text of the file: 64 hex digits (32 for a hash key) with white space around them, or what `baton key` wrote.
    pub text: String,
    /// The permission bits of the file.
    pub mode: u32,
}

/// The longest file that is read, in bytes: far more than 256 nodes and 64 services need, and a small part of memory.
const MAX_BYTES: u64 = 4 << 20;

/// Reads the configuration or a key file, and says who may read it.
pub(crate) fn read_file(path: &Path) -> io::Result<KeyFile> {
    let file = File::open(path)?;
    let metadata: fs::Metadata = file.metadata()?;
    let mut text = String::new();
    let read = file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if read as u64 > MAX_BYTES {
        return Err(io::Error::other("it is longer than 4 MiB"));
    }
    Ok(KeyFile {
        text,
        mode: metadata.permissions().mode() & 0o7777,
    })
}
