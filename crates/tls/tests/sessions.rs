//! Sessions with a client of rustls, and their moves.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use baton_tls::{Received, Session};
use common::*;
use fastrand::Rng;

const LENGTHS: [usize; 7] = [0, 1, 100, (1 << 14) - 1, 1 << 14, (1 << 14) + 1, 1 << 20];

fn data(length: usize) -> Vec<u8> {
    (0..length).map(|at| ((at * 31) >> 3) as u8).collect()
}

#[test]
fn data_of_any_length_passes_both_ways() {
    for suite in suites() {
        let mut pair = Pair::new(suite);
        for length in LENGTHS {
            pair.ask(&data(length));
            pair.answer(&data(length));
            pair = pair.migrate();
            pair.answer(&data(length));
            pair.ask(&data(length));
        }
    }
}

#[test]
fn a_session_moves_a_thousand_times() {
    for suite in suites() {
        let mut pair = Pair::new(suite);
        for number in 0..1000_u32 {
            pair = pair.migrate();
            pair.ask(&number.to_be_bytes());
            pair.answer(&number.to_le_bytes());
        }
    }
}

/// Both sides say things, update keys, and the session moves, all in random order. What is on the way comes in pieces
/// of random length, so moves happen amid records.
#[test]
fn a_session_moves_at_any_moment() {
    for suite in suites() {
        for seed in 0..8 {
            let mut random = Rng::with_seed(seed);
            let mut pair = Pair::new(suite);
            let is_tls13 = suite.tls13().is_some();
            let (mut to_server, mut to_client) = (std::mem::take(&mut pair.input), Vec::new());
            let (mut said, mut answered) = (Vec::new(), Vec::new());
            for _ in 0..1000 {
                match random.u8(0..8) {
                    0 => {
                        let bytes = data(random.usize(0..3000));
                        said.extend(&bytes);
                        pair.client.say(&bytes);
                    }
                    1 => {
                        let bytes = data(random.usize(0..3000));
                        answered.extend(&bytes);
                        pair.session.send(&bytes, &mut to_client).unwrap();
                    }
                    2 if is_tls13 => pair.client.tls.refresh_traffic_keys().unwrap(),
                    3 => pair.session.update_key(&mut to_client),
                    4 | 5 => {
                        to_server.extend(pair.client.output());
                        let cut = random.usize(0..=to_server.len());
                        pair.input.extend(to_server.drain(..cut));
                        let received = pair
                            .session
                            .receive(&mut pair.input, &mut pair.received, &mut to_client)
                            .unwrap();
                        assert_eq!(received, Received::Open);
                    }
                    6 => {
                        let cut = random.usize(0..=to_client.len());
                        pair.client
                            .take(&to_client.drain(..cut).collect::<Vec<_>>())
                            .unwrap();
                    }
                    _ => pair = pair.migrate(),
                }
            }
            to_server.extend(pair.client.output());
            pair.input.extend(to_server);
            pair.session
                .receive(&mut pair.input, &mut pair.received, &mut to_client)
                .unwrap();
            pair.client.take(&to_client).unwrap();
            assert!(
                pair.received == said && pair.client.received == answered,
                "{suite:?}, seed {seed}"
            );
            assert!(pair.input.is_empty() && said.len() > 10_000 && answered.len() > 10_000);
        }
    }
}

#[test]
fn records_may_be_cut_anywhere() {
    for suite in suites() {
        let mut pair = Pair::new(suite);
        pair.client.say(b"cut");
        let bytes = pair.client.output();
        for (at, byte) in bytes.iter().enumerate() {
            assert_eq!(pair.received, b"", "{at}");
            assert_eq!(pair.deliver(&[*byte]), Received::Open);
            pair = pair.migrate();
        }
        assert_eq!(pair.received, b"cut");
    }
}

#[test]
fn close_notify_passes_both_ways() {
    for suite in suites() {
        let mut pair = Pair::new(suite);
        pair.client.say(b"the last");
        pair.client.tls.send_close_notify();
        let bytes = pair.client.output();
        assert_eq!(pair.deliver(&bytes), Received::Closed);
        assert_eq!(pair.received, b"the last");
        let mut pair = pair.migrate();
        assert_eq!(pair.deliver(b""), Received::Closed);
        pair.answer(b"the answer");
        let mut output = Vec::new();
        pair.session.close(&mut output);
        pair.client.take(&output).unwrap();
        assert!(pair.client.is_closed);
    }
}

#[test]
fn a_clients_flipped_bytes_are_never_data() {
    for suite in suites() {
        let mut pair = Pair::new(suite);
        let state = |pair: &mut Pair| {
            let bytes = std::mem::replace(&mut pair.session, Pair::new(suite).session).export();
            pair.session = Session::import(&bytes).unwrap();
            bytes
        };
        let before = state(&mut pair);
        pair.client.say(b"a secret");
        let bytes = pair.client.output();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            // Only a test may import the same session again and again.
            let mut session = Session::import(&before).unwrap();
            let (mut plain, mut output) = (Vec::new(), Vec::new());
            let result = session.receive(&mut flipped, &mut plain, &mut output);
            assert_eq!(plain, b"");
            assert!(
                result.is_err() && !output.is_empty() || matches!(at, 3 | 4),
                "{at}"
            );
        }
        pair.deliver(&bytes);
        assert_eq!(pair.received, b"a secret");
    }
}

/// Each end's alert reaches the other one.
#[test]
fn alerts_are_understood() {
    for suite in suites() {
        let mut pair = Pair::new(suite);
        pair.client.say(b"a secret");
        let mut bytes = pair.client.output();
        *bytes.last_mut().unwrap() ^= 1;
        let mut output = Vec::new();
        pair.session
            .receive(&mut bytes, &mut pair.received, &mut output)
            .unwrap_err();
        let told = pair.client.take(&output).unwrap_err();
        assert_eq!(
            told,
            rustls::Error::AlertReceived(rustls::AlertDescription::BadRecordMac)
        );

        let mut pair = Pair::new(suite);
        let mut bytes = Vec::new();
        pair.session.send(b"x", &mut bytes).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        assert_eq!(
            pair.client.take(&bytes).unwrap_err(),
            rustls::Error::DecryptError
        );
        let mut bytes = pair.client.output();
        let error = pair
            .session
            .receive(&mut bytes, &mut Vec::new(), &mut Vec::new())
            .unwrap_err();
        assert_eq!(
            error,
            baton_tls::RecordError::Alerted(baton_tls::Alert::BAD_RECORD_MAC)
        );
    }
}
