//! Properties of every frame.

use baton_saps_protocol::wire::{Decoder, Frame, FrameError, HEADER_BYTES};
use proptest::collection::vec;
use proptest::prelude::*;

use super::any;

proptest! {
    /// The frames of a channel are decoded, however the network cuts its bytes.
    #[test]
    fn frames_come_back_from_any_pieces(
        frames in vec((any::frame(), any::<u32>()), 1..20),
        pieces in vec(1usize..3000, 1..200),
    ) {
        let sent = frames.into_iter().map(|(frame, epoch)| match frame {
            Frame::Hello(_) => (0, frame),
            _ => (epoch, frame),
        }).collect::<Vec<_>>();
        let bytes = sent.iter().map(|(epoch, frame)| frame.encode(*epoch)).collect::<Vec<_>>().concat();
        let mut rest = &bytes[..];
        let mut decoder = Decoder::default();
        let mut found = Vec::new();
        for piece in pieces.into_iter().cycle() {
            let (now, later) = rest.split_at(piece.min(rest.len()));
            decoder.buffer().extend_from_slice(now);
            while let Some(frame) = decoder.next().unwrap() {
                found.push(frame);
            }
            prop_assert!(later.is_empty() || decoder.missing() > 0);
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(decoder.end(), Ok(()));
        prop_assert_eq!(found, sent);
    }

    /// A frame without its end is reported as truncated.
    #[test]
    fn every_beginning_of_a_frame_is_truncated(frame in any::frame(), at in any::<prop::sample::Index>()) {
        let bytes = frame.encode(0);
        let length = 1 + at.index(bytes.len() - 1);
        let mut decoder = Decoder::default();
        decoder.buffer().extend_from_slice(&bytes[..length]);
        prop_assert_eq!(decoder.next(), Ok(None));
        let missing = if length < HEADER_BYTES { HEADER_BYTES } else { bytes.len() } - length;
        prop_assert_eq!(decoder.end(), Err(FrameError::Truncated { missing }));
    }

    /// Any bytes are either a frame that encodes to the same bytes, or an error.
    #[test]
    fn what_is_understood_has_one_form(mut bytes in vec(any::<u8>(), 16..80), kind in 1u8..16) {
        // Random bytes are usually wrong in their header, so this one is made right.
        let length = u8::try_from(bytes.len() - HEADER_BYTES).unwrap();
        bytes[..4].copy_from_slice(&[kind, 0, 0, 0]);
        bytes[12..16].copy_from_slice(&[0, 0, 0, length]);
        let mut decoder = Decoder::default();
        decoder.buffer().extend_from_slice(&bytes);
        if let Ok(Some((epoch, frame))) = decoder.next() {
            prop_assert_eq!(&frame.encode(epoch)[..], &bytes[..]);
        }
    }
}
