//! A head in segments of any size and order, each as often as it likes, put together. The input is some segments, each
//! two bytes that say where it begins and how long it is, up to one that is empty; and then what they are of.

#![no_main]

use std::time::Duration;

use baton_core::{
    Moment,
    heads::{Heads, Step, head_length},
};
use libfuzzer_sys::fuzz_target;

/// Sequence numbers come round in the middle of it.
const BEGIN: u32 = u32::MAX - 20;

fuzz_target!(|bytes: &[u8]| {
    let mut segments = Vec::new();
    let mut rest = bytes;
    while let [at, length, behind @ ..] = rest {
        rest = behind;
        if *length == 0 {
            break;
        }
        segments.push((usize::from(*at), usize::from(*length)));
    }
    let text = rest;
    let mut heads = Heads::default();
    let mut was_stuck = false;
    for (number, (at, length)) in segments.into_iter().enumerate() {
        let now = Moment::after_epoch(Duration::from_millis(number as u64));
        let payload = &text[at.min(text.len())..(at + length).min(text.len())];
        let seq = BEGIN.wrapping_add(at as u32);
        let step = match heads.add(1, seq, payload, (at, length)) {
            Step::Foreign(frame) if at == 0 => heads.begin(now, 1, seq, payload, frame),
            step => step,
        };
        match step {
            Step::Whole {
                text: whole,
                frames,
                is_acknowledged,
            } => {
                assert!(text.starts_with(&whole), "not what was sent");
                assert!(head_length(&whole).is_some(), "not whole");
                assert_eq!(is_acknowledged, was_stuck);
                was_stuck = false;
                // Each frame goes on where those before end, or earlier.
                let mut end = 0;
                for (at, length) in frames {
                    assert!(at <= end && at + length > end, "a gap, or of no use");
                    end = (at + length).min(text.len());
                }
                assert_eq!(end, whole.len());
            }
            Step::Stuck(next) => {
                let come = next.wrapping_sub(BEGIN) as usize;
                assert!(come <= text.len(), "acknowledges what was not sent");
                assert_eq!(head_length(&text[..come]), None, "waits for more of a whole head");
                was_stuck |= come > 0;
            }
            Step::TooLong(_) => panic!("there is no such text"),
            Step::Waits | Step::Foreign(_) => (),
        }
    }
});
