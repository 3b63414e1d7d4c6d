//! What sessions do when somebody is hostile.

use proptest::prelude::*;

use super::regular::sealed_with_last_zero;
use super::*;
use crate::alert::Alert;
use crate::record::LONGEST_PLAIN;

/// The alert that is the only thing in `output`, as the client reads it.
fn alert(client: &mut Session, output: &[u8]) -> Option<Alert> {
    match receive(client, output) {
        (Err(RecordError::Alerted(alert)), plain, _) => {
            assert!(plain.is_empty());
            Some(alert)
        }
        (Ok(Received::Open), plain, _) if plain.is_empty() && output.is_empty() => None,
        other => panic!("{other:?}"),
    }
}

/// The server refuses these bytes by this alert, tells nothing of them, and has then ended.
fn refuses(server: &mut Session, client: &mut Session, bytes: &[u8]) -> Alert {
    let (result, plain, output) = receive(server, bytes);
    let Err(RecordError::Refused { alert: meant, .. }) = result else {
        panic!("{result:?}");
    };
    assert!(plain.is_empty());
    assert_eq!(alert(client, &output), Some(meant));
    assert_eq!(
        receive(server, bytes),
        (Err(RecordError::Ended), vec![], vec![])
    );
    let mut output = Vec::new();
    assert_eq!(server.send(b"more", &mut output), Err(RecordError::Ended));
    server.close(&mut output);
    server.update_key(&mut output);
    assert_eq!(output, b"");
    meant
}

#[test]
fn a_flipped_byte_is_never_data() {
    for &suite in Suite::ALL {
        let (_, mut client) = pair(suite);
        let right = record(&mut client, Content::Data, b"a secret");
        for at in 0..right.len() {
            for bit in 0..8 {
                let (mut server, mut client) = pair(suite);
                client.sending.sequence += 1;
                let mut bytes = right.clone();
                bytes[at] ^= 1 << bit;
                let (result, plain, output) = receive(&mut server, &bytes);
                assert_eq!(plain, b"");
                match (result, at) {
                    // A longer record is waited for.
                    (Ok(Received::Open), 3 | 4) => assert_eq!(output, b""),
                    (Err(RecordError::Refused { alert: meant, .. }), _) => {
                        assert_eq!(alert(&mut client, &output), Some(meant));
                        assert!(at < 5 || meant == Alert::BAD_RECORD_MAC, "{at}: {meant}");
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

#[test]
fn records_neither_come_twice_nor_are_passed_over() {
    for &suite in Suite::ALL {
        let (mut server, mut client) = pair(suite);
        let first = record(&mut client, Content::Data, b"first");
        let second = record(&mut client, Content::Data, b"second");
        assert_eq!(
            refuses(&mut server, &mut client, &second),
            Alert::BAD_RECORD_MAC
        );
        let (mut server, mut client) = pair(suite);
        assert_eq!(receive(&mut server, &first).1, b"first");
        assert_eq!(
            refuses(&mut server, &mut client, &first),
            Alert::BAD_RECORD_MAC
        );
    }
}

#[test]
fn what_cannot_be_is_refused_by_the_right_alert() {
    let handshake = |bytes: &'static [u8]| (Content::Handshake, bytes);
    for (is_tls13, (content, bytes), expected) in [
        (true, handshake(&[24, 0, 0, 1, 2]), Alert::ILLEGAL_PARAMETER),
        (true, handshake(&[24, 0, 0, 2, 0, 0]), Alert::DECODE_ERROR),
        (true, handshake(&[24, 0, 1]), Alert::DECODE_ERROR),
        (
            true,
            handshake(&[24, 0, 0, 1, 0, 24]),
            Alert::UNEXPECTED_MESSAGE,
        ),
        (
            true,
            handshake(&[24, 0, 0, 1, 0, 24, 0, 0, 1, 0]),
            Alert::UNEXPECTED_MESSAGE,
        ),
        (true, handshake(&[1, 0, 0, 100]), Alert::UNEXPECTED_MESSAGE),
        (true, handshake(&[4, 0, 0, 1, 0]), Alert::UNEXPECTED_MESSAGE),
        (true, handshake(&[]), Alert::UNEXPECTED_MESSAGE),
        (true, (Content::Alert, &[]), Alert::DECODE_ERROR),
        (true, (Content::Alert, &[2, 0, 0]), Alert::DECODE_ERROR),
        (false, handshake(&[1, 0, 0, 100]), Alert::NO_RENEGOTIATION),
        (
            false,
            handshake(&[24, 0, 0, 1, 0]),
            Alert::UNEXPECTED_MESSAGE,
        ),
        (false, handshake(&[]), Alert::UNEXPECTED_MESSAGE),
        (false, (Content::Alert, &[1]), Alert::DECODE_ERROR),
    ] {
        for suite in of_version(is_tls13) {
            let (mut server, mut client) = pair(suite);
            let bytes = record(&mut client, content, bytes);
            assert_eq!(
                refuses(&mut server, &mut client, &bytes),
                expected,
                "{suite:?}, {content:?}, {bytes:?}"
            );
        }
    }
}

#[test]
fn a_header_that_cannot_be_is_refused_at_once() {
    for (is_tls13, header, expected) in [
        (true, [20, 3, 3, 0, 1], Alert::UNEXPECTED_MESSAGE),
        (true, [21, 3, 3, 0, 2], Alert::UNEXPECTED_MESSAGE),
        (true, [22, 3, 3, 0, 9], Alert::UNEXPECTED_MESSAGE),
        (true, [23, 3, 1, 0, 9], Alert::PROTOCOL_VERSION),
        (true, [23, 3, 3, 0x41, 1], Alert::RECORD_OVERFLOW),
        (false, [20, 3, 3, 0, 1], Alert::UNEXPECTED_MESSAGE),
        (false, [24, 3, 3, 0, 1], Alert::UNEXPECTED_MESSAGE),
        (false, [23, 3, 4, 0, 9], Alert::PROTOCOL_VERSION),
        (false, [23, 3, 3, 0x48, 1], Alert::RECORD_OVERFLOW),
    ] {
        for suite in of_version(is_tls13) {
            let (mut server, mut client) = pair(suite);
            assert_eq!(
                refuses(&mut server, &mut client, &header),
                expected,
                "{suite:?}, {header:?}"
            );
        }
    }
}

#[test]
fn padding_alone_or_too_much_of_it_is_refused() {
    for suite in of_version(true) {
        for (inner, expected) in [
            (vec![], Alert::UNEXPECTED_MESSAGE),
            (vec![0; 100], Alert::UNEXPECTED_MESSAGE),
            (
                [&[23][..], &[0; LONGEST_PLAIN]].concat(),
                Alert::RECORD_OVERFLOW,
            ),
            (vec![20], Alert::UNEXPECTED_MESSAGE),
            (vec![24], Alert::UNEXPECTED_MESSAGE),
        ] {
            let (mut server, mut client) = pair(suite);
            let bytes = sealed_with_last_zero(&mut client, &inner);
            assert_eq!(refuses(&mut server, &mut client, &bytes), expected);
        }
    }
}

#[test]
fn nothing_comes_amid_the_parts_of_a_message() {
    for suite in of_version(true) {
        for content in [Content::Data, Content::Alert] {
            let (mut server, mut client) = pair(suite);
            let part = record(&mut client, Content::Handshake, &[24, 0]);
            assert_eq!(
                receive(&mut server, &part),
                (Ok(Received::Open), vec![], vec![])
            );
            let bytes = record(&mut client, content, &[1, 0]);
            assert_eq!(
                refuses(&mut server, &mut client, &bytes),
                Alert::UNEXPECTED_MESSAGE
            );
        }
    }
}

#[test]
fn what_brings_nothing_is_bounded() {
    for &suite in Suite::ALL {
        let (mut server, mut client) = pair(suite);
        for data in [&b"x"[..], b""] {
            for _ in 0..32 {
                let bytes = record(&mut client, Content::Data, b"");
                assert_eq!(
                    receive(&mut server, &bytes),
                    (Ok(Received::Open), vec![], vec![])
                );
            }
            let bytes = record(&mut client, Content::Data, data);
            match data {
                b"" => assert_eq!(
                    refuses(&mut server, &mut client, &bytes),
                    Alert::UNEXPECTED_MESSAGE
                ),
                _ => assert_eq!(receive(&mut server, &bytes).1, data),
            }
        }
    }
    for suite in of_version(true) {
        let (mut server, mut client) = pair(suite);
        let update = |server: &mut Session, client: &mut Session| {
            let bytes = record(client, Content::Handshake, &[24, 0, 0, 1, 1]);
            client.sending.update();
            // It moves each time, and the count moves along.
            *server = Session::import(&std::mem::replace(server, pair(suite).0).export()).unwrap();
            receive(server, &bytes)
        };
        for round in 0..2 {
            for _ in 0..32 {
                let (result, _, output) = update(&mut server, &mut client);
                assert_eq!(result, Ok(Received::Open));
                assert_eq!(receive(&mut client, &output).0, Ok(Received::Open));
                client.limits.data();
            }
            if round == 0 {
                let bytes = record(&mut client, Content::Data, b"data");
                assert_eq!(receive(&mut server, &bytes).1, b"data");
            }
        }
        let (result, ..) = update(&mut server, &mut client);
        assert!(matches!(
            result,
            Err(RecordError::Refused {
                alert: Alert::UNEXPECTED_MESSAGE,
                ..
            })
        ));
    }
}

#[test]
fn an_alert_ends_the_session_silently() {
    for &suite in Suite::ALL {
        let (mut server, mut client) = pair(suite);
        let bytes = record(&mut client, Content::Alert, &[2, 48]);
        let told = (Err(RecordError::Alerted(Alert::UNKNOWN_CA)), vec![], vec![]);
        assert_eq!(receive(&mut server, &bytes), told);
        let mut server = Session::import(&server.export()).unwrap();
        assert_eq!(
            receive(&mut server, b""),
            (Err(RecordError::Ended), vec![], vec![])
        );
    }
}

proptest! {
    #[test]
    fn random_bytes_are_never_data(
        number in 0..Suite::ALL.len(),
        header in prop::option::of((20..25_u8, 0..300_u16)),
        bytes in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let (mut server, _) = pair(Suite::ALL[number]);
        let mut input = Vec::new();
        if let Some((kind, length)) = header {
            input.extend([kind, 3, 3, (length >> 8) as u8, length as u8]);
        }
        input.extend(bytes);
        let (result, plain, output) = receive(&mut server, &input);
        prop_assert_eq!(plain, b"");
        prop_assert_eq!(result.is_err(), !output.is_empty());
    }

    /// Whatever authentic records say, nothing panics, and only data is data.
    #[test]
    fn random_content_is_handled(
        number in 0..Suite::ALL.len(),
        contents in prop::collection::vec((0..3_usize, prop::collection::vec(0..30_u8, 0..8)), 0..20),
    ) {
        let (mut server, mut client) = pair(Suite::ALL[number]);
        let mut data = Vec::new();
        let mut heard = Vec::new();
        for (content, bytes) in contents {
            let content = [Content::Alert, Content::Handshake, Content::Data][content];
            let (result, plain, _) = receive(&mut server, &record(&mut client, content, &bytes));
            if content == Content::Data && result == Ok(Received::Open) {
                data.extend(&bytes);
            }
            heard.extend(plain);
            if result != Ok(Received::Open) {
                break;
            }
            if server.receiving.sequence == 0 {
                client.sending.update();
            }
        }
        prop_assert_eq!(heard, data);
    }
}
