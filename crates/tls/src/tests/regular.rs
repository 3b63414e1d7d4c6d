//! What sessions do when nobody is hostile.

use super::*;
use crate::alert::Alert;
use crate::record::LONGEST_PLAIN;

#[test]
fn data_of_any_length_arrives() {
    for &suite in Suite::ALL {
        let (mut server, mut client) = pair(suite);
        for length in [
            0,
            1,
            LONGEST_PLAIN - 1,
            LONGEST_PLAIN,
            LONGEST_PLAIN + 1,
            100_000,
        ] {
            let data: Vec<_> = (0..length).map(|at| at as u8).collect();
            let mut bytes = Vec::new();
            server.send(&data, &mut bytes).unwrap();
            assert_eq!(bytes.is_empty(), length == 0);
            let (result, plain, output) = receive(&mut client, &bytes);
            assert_eq!((result, output), (Ok(Received::Open), vec![]));
            assert!(plain == data);
        }
    }
}

#[test]
fn each_side_can_close() {
    for &suite in Suite::ALL {
        let (mut server, mut client) = pair(suite);
        let mut bytes = Vec::new();
        client.send(b"the last", &mut bytes).unwrap();
        client.close(&mut bytes);
        let length = bytes.len();
        client.close(&mut bytes);
        assert_eq!(bytes.len(), length, "it says so once");
        assert_eq!(client.send(b"more", &mut bytes), Err(RecordError::Ended));
        bytes.extend(b"whatever is behind");
        let (result, plain, output) = receive(&mut server, &bytes);
        assert_eq!(
            (result, &plain[..], &output[..]),
            (Ok(Received::Closed), &b"the last"[..], &b""[..])
        );
        // The server can go on, and does so at another machine too.
        let mut server = Session::import(&server.export()).unwrap();
        assert_eq!(
            receive(&mut server, b"x"),
            (Ok(Received::Closed), vec![], vec![])
        );
        let mut bytes = Vec::new();
        server.send(b"an answer", &mut bytes).unwrap();
        server.close(&mut bytes);
        assert_eq!(
            receive(&mut client, &bytes),
            (Ok(Received::Closed), b"an answer".to_vec(), vec![])
        );
    }
}

#[test]
fn a_key_is_replaced_before_it_is_worn_out() {
    for suite in of_version(true) {
        let at = (1 << 23) - 1;
        let (mut server, mut client) = pair(suite);
        server.sending = direction(suite, 2, at);
        client.receiving = direction(suite, 2, at);
        let mut bytes = Vec::new();
        server.send(&[7; 3 * LONGEST_PLAIN], &mut bytes).unwrap();
        let (result, plain, output) = receive(&mut client, &bytes);
        assert_eq!(
            (result, plain.len(), output),
            (Ok(Received::Open), 3 * LONGEST_PLAIN, vec![])
        );
        assert_eq!((server.sending.sequence, client.receiving.sequence), (2, 2));
    }
}

#[test]
fn tls12_ends_before_its_key_is_worn_out() {
    for suite in of_version(false) {
        let at = (1 << 32) - 1;
        let (mut server, mut client) = pair(suite);
        server.sending = direction(suite, 2, at);
        client.receiving = direction(suite, 2, at);
        let mut bytes = Vec::new();
        assert_eq!(
            server.send(&[7; LONGEST_PLAIN + 1], &mut bytes),
            Err(RecordError::Exhausted)
        );
        assert_eq!(server.send(b"x", &mut bytes), Err(RecordError::Ended));
        let (result, plain, _) = receive(&mut client, &bytes);
        assert_eq!((result, plain.len()), (Ok(Received::Closed), LONGEST_PLAIN));
    }
}

/// RFC 8446, section 4.6.3: whoever is asked for another key while it is silent uses one for the next data, and says so once.
#[test]
fn key_updates_are_answered_once_and_before_the_next_data() {
    let answered = 5 + 5 + 1 + 16;
    for suite in of_version(true) {
        let (mut server, mut client) = pair(suite);
        for (asks, is_answered) in [
            (&[0][..], false),
            (&[0, 1, 1], true),
            (&[1, 0], true),
            (&[], false),
        ] {
            for &asks in asks {
                let update = [24, 0, 0, 1, asks];
                let bytes = record(&mut client, Content::Handshake, &update);
                client.sending.update();
                let silent = (Ok(Received::Open), vec![], vec![]);
                assert_eq!(receive(&mut server, &bytes), silent);
                server = Session::import(&server.export()).unwrap();
            }
            let bytes = record(&mut client, Content::Data, b"under the next key");
            assert_eq!(receive(&mut server, &bytes).1, b"under the next key");
            let mut bytes = Vec::new();
            server.send(b"", &mut bytes).unwrap();
            assert!(bytes.is_empty());
            server.send(b"an answer", &mut bytes).unwrap();
            let length = 9 + suite.record_overhead();
            assert_eq!(bytes.len() - length, if is_answered { answered } else { 0 });
            let heard = (Ok(Received::Open), b"an answer".to_vec(), vec![]);
            assert_eq!(receive(&mut client, &bytes), heard);
        }
    }
}

#[test]
fn a_key_update_may_come_in_parts_and_move_amid_them() {
    for suite in of_version(true) {
        let (mut server, mut client) = pair(suite);
        for part in [&[24][..], &[0, 0], &[1], &[1]] {
            let bytes = record(&mut client, Content::Handshake, part);
            let open = (Ok(Received::Open), vec![], vec![]);
            assert_eq!(receive(&mut server, &bytes), open);
            let is_whole = server.receiving.sequence == 0;
            assert_eq!(server.update_requested, is_whole);
            server = Session::import(&server.export()).unwrap();
        }
        client.sending.update();
        let bytes = record(&mut client, Content::Data, b"after it");
        assert_eq!(receive(&mut server, &bytes).1, b"after it");
    }
}

/// RFC 8446, section 6.1: user_canceled is followed by close_notify.
#[test]
fn warnings_are_passed_over() {
    for &suite in Suite::ALL {
        let (mut server, mut client) = pair(suite);
        for _ in 0..4 {
            let bytes = record(
                &mut client,
                Content::Alert,
                &[1, Alert::USER_CANCELED.number()],
            );
            assert_eq!(
                receive(&mut server, &bytes),
                (Ok(Received::Open), vec![], vec![])
            );
        }
        let bytes = record(
            &mut client,
            Content::Alert,
            &[1, Alert::USER_CANCELED.number()],
        );
        assert!(receive(&mut server, &bytes).0.is_err());
    }
}

#[test]
fn padding_is_taken_off() {
    for suite in of_version(true) {
        let (mut server, mut client) = pair(suite);
        for padding in [1, 255, LONGEST_PLAIN - 5] {
            // The type, which seal() puts behind the content, is the content's last zero but for this byte.
            let mut padded = b"data!\x17".to_vec();
            padded.resize(5 + padding, 0);
            let bytes = sealed_with_last_zero(&mut client, &padded);
            assert_eq!(receive(&mut server, &bytes).1, b"data!", "{padding}");
        }
    }
}

/// A record of TLS 1.3 whose inner plaintext is `inner` and one zero.
pub(super) fn sealed_with_last_zero(client: &mut Session, inner: &[u8]) -> Vec<u8> {
    use ring::aead::{Aad, Nonce};
    let direction = &mut client.sending;
    let length = (inner.len() + 1 + 16) as u16;
    let header = [23, 3, 3, (length >> 8) as u8, length as u8];
    let mut sealed = [inner, &[0]].concat();
    let nonce = Nonce::assume_unique_for_key(direction.nonce());
    direction
        .key
        .seal_in_place_append_tag(nonce, Aad::from(header), &mut sealed)
        .unwrap();
    direction.sequence += 1;
    [&header[..], &sealed].concat()
}

#[test]
fn debug_output_has_no_secret() {
    let (server, _) = pair(Suite::Aes128GcmSha256);
    assert_eq!(
        format!("{server:?}"),
        "Session { server_name: Some(\"any.example\"), alpn: Some(\"h2\"), receiving: Direction { suite: \
         Aes128GcmSha256, sequence: 1, .. }, sending: Direction { suite: Aes128GcmSha256, sequence: 3, .. }, ends: \
         Ends { client_closed: false, closed: false, failed: false }, .. }"
    );
}
