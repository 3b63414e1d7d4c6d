//! A text in segments that overlap, each with what it acknowledges and maybe with timestamps, lined up. The input is some
//! segments, each six bytes, up to one that is empty; and then the text.

use baton_net::client_frame::line_up;

use crate::frame::{ACK, Frame, write};

/// Numbers come round in the middle of it.
const BEGIN: u32 = u32::MAX - 20;
const MOST: usize = 16;

struct Segment {
    at: usize,
    end: usize,
    ack: Option<u32>,
    /// The sender's own, and what it echoes.
    stamps: Option<(u32, u32)>,
}

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let mut rest = bytes;
    let mut described = Vec::new();
    while let Some((segment, behind)) = rest.split_first_chunk::<6>() {
        rest = behind;
        if segment[1] == 0 || described.len() == MOST {
            break;
        }
        described.push(*segment);
    }
    let text = rest;
    let mut segments: Vec<Segment> = Vec::new();
    let mut known = None;
    for [at, length, ack, flags, theirs, ours] in described {
        let at = usize::from(at).min(text.len());
        let end = (at + usize::from(length)).min(text.len());
        // There is never a gap.
        let here = *known.get_or_insert(at);
        if at > here {
            continue;
        }
        known = Some(here.max(end));
        let number = |number: u8| BEGIN.wrapping_add(number.into());
        segments.push(Segment {
            at,
            end,
            ack: (flags & 1 != 0).then(|| number(ack)),
            stamps: (flags & 2 != 0).then(|| (number(theirs), number(ours))),
        });
    }
    let mut frames: Vec<_> = (segments.iter())
        .map(|segment| frame(segment, text))
        .collect();
    line_up(&mut frames.iter_mut().collect::<Vec<_>>()).expect("frames of a client");

    let newest = |number: &u32| number.wrapping_sub(BEGIN);
    let newest_ack = (segments.iter())
        .filter_map(|segment| segment.ack)
        .max_by_key(newest);
    let stamps = (segments.iter()).filter_map(|segment| segment.stamps);
    // Of equal ones it is the last.
    let newest_stamps = stamps.max_by_key(|(theirs, _)| newest(theirs));
    let mut at = segments.first().map_or(0, |segment| segment.at);
    for (bytes, segment) in frames.iter().zip(&segments) {
        let frame = Frame::of(bytes);
        frame.check();
        assert_eq!(frame.seq(), BEGIN.wrapping_add(at as u32), "out of line");
        let end = at.max(segment.end);
        assert_eq!(frame.payload(), &text[at..end]);
        at = end;
        let has_ack = frame.flags() & ACK != 0;
        assert_eq!(has_ack.then(|| frame.ack()), segment.ack.and(newest_ack));
        let options = options(segment.stamps.and(newest_stamps));
        assert_eq!(frame.options(), options);
    }
    assert_eq!(at, known.unwrap_or(0), "bytes are missing");
    let again = frames.clone();
    line_up(&mut frames.iter_mut().collect::<Vec<_>>()).expect("frames of a client");
    assert_eq!(frames, again, "they were in line");
}

fn frame(segment: &Segment, text: &[u8]) -> Vec<u8> {
    let options = options(segment.stamps);
    let mut tcp = vec![0x9c, 0x40, 0, 80];
    tcp.extend(BEGIN.wrapping_add(segment.at as u32).to_be_bytes());
    tcp.extend(segment.ack.unwrap_or(0).to_be_bytes());
    tcp.push(((20 + options.len()) as u8) << 2);
    tcp.push(if segment.ack.is_some() { ACK } else { 0 });
    tcp.extend([1, 0xf5, 0, 0, 0, 0]);
    tcp.extend(options);
    write(&tcp, &text[segment.at..segment.end])
}

fn options(stamps: Option<(u32, u32)>) -> Vec<u8> {
    let Some((theirs, ours)) = stamps else {
        return Vec::new();
    };
    [
        &[1, 1, 8, 10][..],
        &theirs.to_be_bytes(),
        &ours.to_be_bytes(),
    ]
    .concat()
}
