//! A packet with two requests becomes two packets, as their client could have sent them.

use anyhow::{Result, ensure};
use baton_dataplane::Punt;

use super::rebuild::{rebuild, tcp};

/// The first so many bytes of payload, and the rest. What ends the stream, or is to be read at once, is said with the
/// rest.
pub fn divide(punt: &Punt, at: usize) -> Result<[Punt; 2]> {
    let tcp = tcp(punt)?;
    let payload = tcp.payload();
    ensure!(0 < at && at < payload.len(), "nothing is behind byte {at}");
    let (mut first, mut rest) = (tcp.to_header(), tcp.to_header());
    (first.fin, first.psh) = (false, false);
    // Below 64 KB.
    rest.sequence_number = rest.sequence_number.wrapping_add(at as u32);
    Ok([
        rebuild(punt, first, &payload[..at])?,
        rebuild(punt, rest, &payload[at..])?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::judge::rebuild::tests::{is_whole, punt};

    #[test]
    fn both_parts_are_whole_packets() {
        let whole = punt(0xffff_fffd, 77, Some((9, 7)), b"GET /a GET /b");
        let parts = divide(&whole, 7).expect("a packet with two requests");
        for (part, text, seq, ends) in [
            (&parts[0], &b"GET /a "[..], 0xffff_fffd, false),
            (&parts[1], b"GET /b", 4, true),
        ] {
            is_whole(part);
            let tcp = tcp(part).expect("a client's packet");
            assert_eq!(tcp.payload(), text);
            assert_eq!(
                (tcp.sequence_number(), tcp.fin(), tcp.psh()),
                (seq, ends, ends)
            );
            assert_eq!((tcp.acknowledgment_number(), tcp.options().len()), (77, 12));
            assert_eq!(part.frame[..14], whole.frame[..14]);
        }
    }

    #[test]
    fn where_nothing_is_to_divide() {
        for at in [0, 5, 6] {
            assert!(divide(&punt(1, 77, None, b"GET /"), at).is_err());
        }
    }
}
