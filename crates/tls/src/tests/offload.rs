//! What sessions say while the kernel makes their records.

use super::*;
use crate::direction::RECORDS_MOST;
use crate::suite::Version;
use crate::transfer::ImportError;

#[test]
fn data_is_left_to_the_kernel_and_the_session_goes_on_behind_it() {
    for &suite in Suite::ALL {
        let (mut server, mut client) = pair(suite);
        let key = server.sending_key();
        assert_eq!((key.suite, key.sequence), (suite, 3));
        server.offload_sending();
        let mut output = Vec::new();
        server.send(b"as it is", &mut output).unwrap();
        assert_eq!(output, b"as it is");
        assert!(server.reclaim_sending(2).is_err(), "a number went by");
        assert!(server.reclaim_sending(RECORDS_MOST).is_err());
        server.reclaim_sending(5).unwrap();
        assert!(server.reclaim_sending(5).is_err(), "it has it already");
        let mut server = Session::import(&server.export()).unwrap();
        let mut bytes = Vec::new();
        server.send(b"behind it", &mut bytes).unwrap();
        assert_eq!(bytes.len(), 9 + suite.record_overhead());
        client.receiving = direction(suite, 2, 5);
        assert_eq!(receive(&mut client, &bytes).1, b"behind it");
    }
}

#[test]
fn a_session_that_the_kernel_sends_for_goes_nowhere() {
    let (mut server, _) = pair(Suite::Aes128GcmSha256);
    server.offload_sending();
    let refused = ImportError::Malformed("a record's number");
    assert_eq!(Session::import(&server.export()).err(), Some(refused));
}

#[test]
fn alerts_are_left_to_the_kernel() {
    for &suite in Suite::ALL {
        let (mut server, _) = pair(suite);
        server.offload_sending();
        let mut output = Vec::new();
        server.close(&mut output);
        server.close(&mut output);
        assert_eq!(server.take_alert(), Some([1, 0]));
        assert_eq!((server.take_alert(), &output[..]), (None, &b""[..]));

        let (mut server, mut client) = pair(suite);
        server.offload_sending();
        let mut bytes = Vec::new();
        client.send(b"altered", &mut bytes).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        let (result, _, output) = receive(&mut server, &bytes);
        assert!(result.is_err() && output.is_empty());
        assert_eq!(server.take_alert(), Some([2, 20]));
    }
}

#[test]
fn a_session_ends_when_its_key_would_have_to_be_replaced() {
    for suite in of_version(true) {
        let (mut server, mut client) = pair(suite);
        server.offload_sending();
        for (asks, ends) in [(0, false), (1, true)] {
            let mut bytes = Vec::new();
            let update = [24, 0, 0, 1, asks];
            (client.sending).seal(Content::Handshake, &update, &mut bytes);
            client.sending.update();
            let open = (Ok(Received::Open), vec![], vec![]);
            assert_eq!(receive(&mut server, &bytes), open);
            assert_eq!(server.must_end(), ends);
        }
        // The session itself can use another key again.
        server.reclaim_sending(3).unwrap();
        let mut bytes = Vec::new();
        server.send(b"under the next key", &mut bytes).unwrap();
        assert_eq!(receive(&mut client, &bytes).1, b"under the next key");
        assert_eq!(client.receiving.sequence, 1);
    }
    for suite in of_version(true) {
        let (mut server, mut client) = pair(suite);
        let bytes = record(&mut client, Content::Handshake, &[24, 0, 0, 1, 1]);
        assert_eq!(receive(&mut server, &bytes).0, Ok(Received::Open));
        server.offload_sending();
        assert!(server.must_end(), "it was asked for another key before");
    }
    for &suite in Suite::ALL {
        let most = match suite.version() {
            Version::Tls13 => 1 << 23,
            Version::Tls12 => 1 << 32,
        };
        let (mut server, _) = pair(suite);
        server.offload_sending();
        for (next, ends) in [(most - 1, false), (most, true), (2 * most - 1, true)] {
            assert_eq!(server.watch_offloaded(next), Ok(()));
            assert_eq!(server.must_end(), ends);
        }
        assert_eq!(
            server.watch_offloaded(2 * most),
            Err(RecordError::Exhausted)
        );
    }
}

/// The explicit parts of nonces in TLS 1.2: those that the kernel counts, and those of sessions.
#[test]
fn the_kernel_never_uses_a_nonce_of_a_session() {
    for suite in Suite::ALL.iter().filter(|suite| suite.has_explicit_nonce()) {
        for seed in 0..=255 {
            let explicit = |nonce: &[u8]| u64::from_be_bytes(nonce[4..].try_into().unwrap());
            let counted = |sequence| {
                let mut direction = direction(*suite, seed, 0);
                direction.sequence = sequence;
                explicit(&*direction.key_for_kernel().iv)
            };
            for sequence in [0, 1, 255, 256, (1 << 32) - 1, RECORDS_MOST - 1] {
                let mut session = direction(*suite, seed, 0);
                session.sequence = sequence;
                // The upper 16 bits tell them apart, whatever the numbers are.
                let of_session = explicit(&session.nonce());
                assert_ne!(counted(sequence) >> 48, of_session >> 48);
                assert_eq!(counted(sequence), counted(0) + sequence);
            }
        }
    }
}
