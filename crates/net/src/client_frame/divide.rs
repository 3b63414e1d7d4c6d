//! A frame with two requests becomes two frames, as their client could have sent them.

use super::{BadFrame, Layers, advance, rebuild};

/// The first so many bytes of payload, and the rest. What ends the stream, or is to be read at once, is said with the
/// rest.
///
/// # Errors
/// It is not of TCP over IPv4, or one of the parts would be empty.
pub fn divide(frame: &[u8], at: usize) -> Result<[Vec<u8>; 2], BadFrame> {
    let tcp = Layers::of(frame)?.tcp;
    let payload = tcp.payload();
    let length = payload.len();
    if at == 0 || at >= length {
        return Err(BadFrame::NothingBehind { at, length });
    }
    let (mut first, mut rest) = (tcp.to_header(), tcp.to_header());
    (first.fin, first.psh) = (false, false);
    advance(&mut rest, at);
    Ok([
        rebuild(frame, first, &payload[..at])?,
        rebuild(frame, rest, &payload[at..])?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_frame::tests::{frame, is_whole, tcp};

    #[test]
    fn both_parts_are_whole_packets() {
        let whole = frame(0xffff_fffd, 77, Some((9, 7)), b"GET /a GET /b");
        let parts = divide(&whole, 7).unwrap();
        for (part, text, seq, ends) in [
            (&parts[0], &b"GET /a "[..], 0xffff_fffd, false),
            (&parts[1], b"GET /b", 4, true),
        ] {
            is_whole(part);
            let tcp = tcp(part);
            assert_eq!(tcp.payload(), text);
            assert_eq!(
                (tcp.sequence_number(), tcp.fin(), tcp.psh()),
                (seq, ends, ends)
            );
            assert_eq!((tcp.acknowledgment_number(), tcp.options().len()), (77, 12));
            assert_eq!(part[..14], whole[..14]);
        }
    }

    #[test]
    fn where_nothing_is_to_divide() {
        for at in [0, 5, 6] {
            let refused = Err(BadFrame::NothingBehind { at, length: 5 });
            assert_eq!(divide(&frame(1, 77, None, b"GET /"), at), refused);
        }
    }
}
