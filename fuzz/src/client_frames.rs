//! A frame of anybody, read and changed as frames of clients are. The first two bytes say where it is divided.

use baton_net::client_frame::{BadFrame, Segment, acknowledge, divide, line_up};

use crate::frame::{FIN, Frame, PSH, URG};

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let Some((at, frame)) = bytes.split_first_chunk() else {
        return;
    };
    let at = usize::from(u16::from_be_bytes(*at));
    let Ok(segment) = Segment::read(frame) else {
        // Addresses that no flow can have may be the reason, and then it can be changed all the same.
        let _ = (divide(frame, at), acknowledge(frame, at as u32));
        return;
    };
    let whole = Frame::of(frame);
    assert_eq!(
        (segment.seq, segment.payload),
        (whole.seq(), whole.payload())
    );
    check_acknowledgement(frame, at as u32);

    let parts = match divide(frame, at) {
        Ok(parts) => parts,
        Err(error) => {
            let length = whole.payload().len();
            assert!(at == 0 || at >= length, "{error}");
            assert_eq!(error, BadFrame::NothingBehind { at, length });
            return;
        }
    };
    let [first, rest] = parts.each_ref().map(|part| Frame::of(part));
    for (part, (payload, begin)) in [first, rest]
        .into_iter()
        .zip([(&whole.payload()[..at], 0), (&whole.payload()[at..], at)])
    {
        part.check();
        assert_eq!(part.payload(), payload);
        assert_eq!(part.seq(), whole.seq().wrapping_add(begin as u32));
        assert_eq!(part.unchanging(), whole.unchanging());
        let read = Segment::read(part.bytes).expect("it is of the same client");
        assert_eq!((read.flow, read.key), (segment.flow, segment.key));
        assert_eq!((read.seq, read.payload), (part.seq(), part.payload()));
    }
    assert_eq!(first.flags(), whole.flags() & !(FIN | PSH));
    assert_eq!(first.urgent(), whole.urgent());
    assert_eq!(rest.flags() | URG, whole.flags() | URG);
    let is_urgent = |end: &u32| (1..=u32::from(u16::MAX)).contains(&end.wrapping_sub(rest.seq()));
    assert_eq!(rest.urgent(), whole.urgent().filter(is_urgent));
    check_lines(frame, parts, at);
}

/// Parts of one frame are in line. A frame of which a part was before it loses that.
fn check_lines(frame: &[u8], mut parts: [Vec<u8>; 2], at: usize) {
    let divided = parts.clone();
    line_up(&mut parts.each_mut()).expect("they were just read");
    assert_eq!(parts, divided);
    let mut overlapping = [parts[0].clone(), frame.to_vec()];
    line_up(&mut overlapping.each_mut()).expect("they were just read");
    assert_eq!(overlapping, divided);
    let mut twice = [frame.to_vec(), frame.to_vec()];
    line_up(&mut twice.each_mut()).expect("they were just read");
    let [once, empty] = twice.each_ref().map(|frame| Frame::of(frame));
    assert_eq!(once.bytes, frame);
    assert!(at < once.payload().len() && empty.payload().is_empty());
    empty.check();
}

fn check_acknowledgement(frame: &[u8], next: u32) {
    let answer = acknowledge(frame, next).expect("it was just read");
    let [asked, answer] = [frame, &answer].map(Frame::of);
    answer.check();
    assert!(answer.payload().is_empty());
    assert_eq!((answer.seq(), answer.ack()), (asked.ack(), next));
    let flow = |frame: Frame<'_>| Segment::read(frame.bytes).map(|segment| segment.flow);
    let [asked, answer] = [asked, answer].map(flow);
    // The other way round it may be none.
    if let (Ok(asked), Ok(answer)) = (asked, answer) {
        assert_eq!(
            (asked.client(), asked.cluster()),
            (answer.cluster(), answer.client())
        );
    }
}
