//! Fuzzes what data servers report of large files: bytes that can be read must be the same after they are written and
//! read again.

use baton_wire::LargePaths;

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let Some(large) = LargePaths::read(bytes) else {
        return;
    };
    assert_eq!(large.left_out(), 0, "more than can be told");
    assert_eq!(LargePaths::read(&large.write()), Some(large));
}
