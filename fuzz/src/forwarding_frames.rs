//! Fuzzes the frames of a channel whose other end may send anything. Frames that were decoded must encode to exactly
//! the bytes from which they were decoded.

use baton_saps_protocol::wire::Decoder;

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let mut decoder = Decoder::default();
    decoder.buffer().extend_from_slice(bytes);
    let mut again = Vec::new();
    loop {
        match decoder.next() {
            Ok(Some((epoch, frame))) => again.extend_from_slice(&frame.encode(epoch)),
            Ok(None) => {
                let whole = decoder.end().is_ok();
                assert!(!whole || again == bytes, "bytes were lost");
                break;
            }
            Err(_) => break,
        }
    }
    assert!(bytes.starts_with(&again), "a frame has two forms");
}
