//! Fuzzes paths of requests: each path has one spelling, and that spelling is read as the same path.

use baton_wire::{HashKey, Path};

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let Ok(path) = Path::read(bytes) else {
        return;
    };
    assert_eq!(
        Path::read(path.as_bytes()).as_ref(),
        Ok(&path),
        "a second spelling"
    );
    let decoded = path.decoded();
    assert!(!decoded.contains(&0), "a NUL");
    // The path stays the same if each of its bytes is escaped.
    let mut escaped = Vec::new();
    for &byte in &decoded {
        match byte {
            b'/' => escaped.push(b'/'),
            byte => escaped.extend(format!("%{byte:02x}").bytes()),
        }
    }
    assert_eq!(Path::read(&escaped).as_ref(), Ok(&path), "escapes count");
    assert!(Path::read_prefix(path.as_bytes()).is_ok());
    assert!(path.hash(HashKey::from_words([1, 2])).is_some());
}
