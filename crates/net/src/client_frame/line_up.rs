//! Packets of one head go together: one behind the other, as if their client had sent them so, at once.
//!
//! Where they overlap, the program would take the second for one that comes again. And by the time at which the first one
//! came, the response before may not have been whole, and then its server lets the connection go to nobody; and what has
//! an older timestamp than what was heard since is dropped (RFC 7323, 5.3).

use etherparse::TcpHeader;

use super::{BadFrame, Layers, advance, rebuild};

/// Kinds of options, and how long that one is (RFC 9293, 3.1; RFC 7323, 3).
const NOP: u8 = 1;
const TIMESTAMPS: u8 = 8;
const TIMESTAMPS_BYTES: usize = 10;

/// Has each of them, which are in their order and without gaps, begin where the one before ends. All acknowledge what one of
/// them does, and carry the newest timestamps of them.
///
/// # Errors
/// One of them is not of TCP over IPv4.
pub fn line_up(frames: &mut [&mut Vec<u8>]) -> Result<(), BadFrame> {
    let headers = frames
        .iter()
        .map(|frame| Ok(Layers::of(frame)?.tcp.to_header()))
        .collect::<Result<Vec<_>, _>>()?;
    let said = headers.iter().map(Said::of);
    let newest = said.fold(Said::default(), Said::or_newer);
    let mut next = None;
    for (frame, mut header) in frames.iter_mut().zip(headers) {
        let payload = Layers::of(frame)?.tcp.payload();
        let next = next.get_or_insert(header.sequence_number);
        let seen = next.wrapping_sub(header.sequence_number) as usize;
        let fresh = payload.get(seen..).unwrap_or_default();
        // A packet has less than 64 KB.
        let end = next.wrapping_add(fresh.len() as u32);
        if seen > 0 || Said::of(&header) != newest {
            advance(&mut header, seen);
            newest.write(&mut header);
            **frame = rebuild(frame, header, fresh)?;
        }
        *next = end;
    }
    Ok(())
}

/// What a packet says about what its sender has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Said {
    ack: Option<u32>,
    /// The sender's own, and the one that it echoes.
    stamps: Option<(u32, u32)>,
}

impl Said {
    fn of(header: &TcpHeader) -> Self {
        let stamps = timestamps_at(header.options.as_slice()).and_then(|at| {
            let bytes = header.options.as_slice().get(at..at + 8)?;
            let (theirs, ours) = bytes.split_first_chunk::<4>()?;
            Some((
                u32::from_be_bytes(*theirs),
                u32::from_be_bytes(*ours.first_chunk()?),
            ))
        });
        Self {
            ack: header.ack.then_some(header.acknowledgment_number),
            stamps,
        }
    }

    /// Of each the newer one: numbers wrap around.
    fn or_newer(self, other: Self) -> Self {
        let is_newer = |a: u32, b: u32| b.wrapping_sub(a) < 1 << 31;
        let ack = match (self.ack, other.ack) {
            (Some(a), Some(b)) => Some(if is_newer(a, b) { b } else { a }),
            (a, b) => a.or(b),
        };
        let stamps = match (self.stamps, other.stamps) {
            (Some(a), Some(b)) => Some(if is_newer(a.0, b.0) { b } else { a }),
            (a, b) => a.or(b),
        };
        Self { ack, stamps }
    }

    /// A packet without timestamps stays so.
    fn write(self, header: &mut TcpHeader) {
        if let (true, Some(ack)) = (header.ack, self.ack) {
            header.acknowledgment_number = ack;
        }
        let at = timestamps_at(header.options.as_slice());
        let Some((at, (theirs, ours))) = at.zip(self.stamps) else {
            return;
        };
        if let Some(bytes) = header.options.as_mut_slice().get_mut(at..at + 8) {
            bytes[..4].copy_from_slice(&theirs.to_be_bytes());
            bytes[4..].copy_from_slice(&ours.to_be_bytes());
        }
    }
}

/// Where the eight bytes of timestamps are in these options.
fn timestamps_at(options: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match (*options.get(at)?, options.get(at + 1)) {
            (0, _) => return None,
            (NOP, _) => at += 1,
            (TIMESTAMPS, Some(&length)) if usize::from(length) == TIMESTAMPS_BYTES => {
                return Some(at + 2);
            }
            (_, Some(&length)) if length >= 2 => at += usize::from(length),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_frame::tests::{frame, is_whole, tcp};

    fn said(frame: &[u8]) -> (Option<u32>, Option<(u32, u32)>) {
        let said = Said::of(&tcp(frame).to_header());
        (said.ack, said.stamps)
    }

    #[test]
    fn all_say_the_newest() {
        let newest = u32::MAX.wrapping_add(5);
        let mut frames = [
            frame(10, u32::MAX - 3, Some((9, 7)), b"GET / HT"),
            frame(18, newest, Some((11, 8)), b"TP/1.1\r\n"),
            // Sent again, and overtaken.
            frame(26, 1, Some((10, 7)), b"\r\n"),
        ];
        let before = frames.clone();
        line_up(&mut frames.each_mut()).unwrap();
        for (after, before) in frames.iter().zip(&before) {
            is_whole(after);
            assert_eq!(said(after), (Some(newest), Some((11, 8))));
            let [after, before] = [after, before].map(|frame| tcp(frame));
            assert_eq!(after.payload(), before.payload());
            assert_eq!(after.sequence_number(), before.sequence_number());
        }
        assert_eq!(frames[1], before[1]);
    }

    #[test]
    fn nothing_is_in_two() {
        let begin = u32::MAX - 2;
        let seq = |at: u32| begin.wrapping_add(at);
        let mut frames = [
            frame(begin, 5, None, b"GET /"),
            frame(seq(2), 5, None, b"T / HT"),
            frame(seq(8), 5, None, b"TP"),
            frame(begin, 5, None, b"GET / HTTP/1.1"),
        ];
        line_up(&mut frames.each_mut()).unwrap();
        let expected = [(0, &b"GET /"[..]), (5, b" HT"), (8, b"TP"), (10, b"/1.1")];
        for (frame, (at, text)) in frames.iter().zip(expected) {
            is_whole(frame);
            let tcp = tcp(frame);
            assert_eq!((tcp.sequence_number(), tcp.payload()), (seq(at), text));
        }
    }

    #[test]
    fn without_timestamps_there_are_none() {
        let mut frames = [frame(10, 5, None, b"a"), frame(11, 6, None, b"b")];
        line_up(&mut frames.each_mut()).unwrap();
        assert!(frames.iter().all(|frame| said(frame) == (Some(6), None)));
    }

    #[test]
    fn options_that_are_none() {
        for options in [
            &[][..],
            &[8],
            &[8, 10],
            &[8, 9, 0, 0],
            &[5, 0],
            &[5, 1],
            &[1, 1, 1, 0, 8, 10],
        ] {
            let mut header = TcpHeader::default();
            assert!(header.set_options_raw(options).is_ok());
            assert_eq!(Said::of(&header).stamps, None, "{options:?}");
        }
    }
}
