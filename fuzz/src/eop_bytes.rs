//! Fuzzes the bytes that anybody may send on a redirectable socket. They come in pieces whose size is the first byte
//! plus one.

use eop_protocol::wire::{Decoder, Parsed, Piece, parse};

const LIMIT: u32 = 1000;

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let Some((step, bytes)) = bytes.split_first() else {
        return;
    };
    let in_steps = decode(bytes, usize::from(*step) + 1);
    assert_eq!(in_steps, decode(bytes, bytes.len().max(1)));
    if let Ok(Parsed::Whole { head, slen, .. }) = parse(bytes, LIMIT) {
        let again = head.bytes(slen);
        let length = again.len();
        assert_eq!(
            parse(&again, LIMIT),
            Ok(Parsed::Whole { head, length, slen })
        );
    }
}

/// What the decoder returned, and how it ended. The result must not depend on where the stream is cut.
fn decode(bytes: &[u8], step: usize) -> (Vec<String>, Vec<u8>, String) {
    let mut decoder = Decoder::new(LIMIT);
    let (mut heads, mut data) = (Vec::new(), Vec::new());
    for mut part in bytes.chunks(step) {
        loop {
            match decoder.next(&mut part) {
                Ok(Some(Piece::Data(piece))) => data.extend(piece),
                Ok(Some(piece)) => heads.push(format!("{piece:?}")),
                Ok(None) => break,
                Err(error) => return (heads, data, error.to_string()),
            }
        }
    }
    (heads, data, format!("{:?}", decoder.finish()))
}
