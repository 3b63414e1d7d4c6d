//! What data servers tell of large files: it is read, or it is not, and what is read is told the same.

use baton_wire::LargePaths;

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let Some(large) = LargePaths::read(bytes) else {
        return;
    };
    assert_eq!(large.left_out(), 0, "more than can be told");
    assert_eq!(LargePaths::read(&large.write()), Some(large));
}
