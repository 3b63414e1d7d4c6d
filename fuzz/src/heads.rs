//! A head in segments of any size and order, each as often as it likes, put together. The input is some segments, each
//! two bytes that say where it begins and how long it is, up to one that is empty; and then what they are of.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    time::Duration,
};

use baton_core::{
    Moment,
    heads::{Heads, Step, head_length},
};

/// Sequence numbers come round in the middle of it.
const BEGIN: u32 = u32::MAX - 20;
/// From one segment to the next: shorter than every pause that counts.
const STEP: Duration = Duration::from_millis(15);

/// Whose it is.
const CLIENT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 1), 4000);

/// Runs one input.
pub fn run(bytes: &[u8]) {
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
    let mut was_told = false;
    for (number, (at, length)) in segments.into_iter().enumerate() {
        let now = Moment::after_epoch(STEP * number as u32);
        let payload = &text[at.min(text.len())..(at + length).min(text.len())];
        let seq = BEGIN.wrapping_add(at as u32);
        let step = match heads.add(now, CLIENT, seq, payload, (at, length)) {
            Step::Foreign(frame) if at == 0 => heads.begin(now, CLIENT, seq, payload, frame),
            step => step,
        };
        let is_stuck = match step {
            Step::Whole {
                text: whole,
                frames,
                is_acknowledged,
            } => {
                assert!(text.starts_with(&whole), "not what was sent");
                assert!(head_length(&whole).is_some(), "not whole");
                assert_eq!(is_acknowledged, was_told);
                was_told = false;
                // Each frame goes on where those before end, or earlier.
                let mut end = 0;
                for (at, length) in frames {
                    assert!(at <= end && at + length > end, "a gap, or of no use");
                    end = (at + length).min(text.len());
                }
                assert_eq!(end, whole.len());
                assert_eq!(heads.first(&CLIENT), None);
                false
            }
            Step::Stuck => true,
            Step::TooLong(_) => panic!("there is no such text"),
            Step::Waits | Step::Foreign(_) => false,
        };
        let are_quiet = !heads.quiet(now).is_empty();
        assert!(heads.quiet(now).is_empty(), "told twice");
        if is_stuck || are_quiet {
            assert_eq!(heads.acknowledge(&CLIENT, BEGIN.wrapping_sub(1)), None);
            let (next, latest) = heads.acknowledge(&CLIENT, BEGIN).expect("it has begun");
            let come = next.wrapping_sub(BEGIN) as usize;
            assert!(come <= text.len(), "acknowledges what was not sent");
            let (at, length) = *latest;
            assert!((at + length).min(text.len()) <= come, "a frame of later");
            assert_eq!(
                head_length(&text[..come]),
                None,
                "waits for more of a whole head"
            );
            was_told |= come > 0;
        }
    }
}
