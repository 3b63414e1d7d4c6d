//! Handshakes that go wrong, or nearly so.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::Arc;

use baton_tls::{Handshake, HandshakeError, Progress};
use common::*;
use proptest::prelude::*;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, Error, PeerIncompatible, ServerConfig, ServerConnection};

#[test]
fn what_is_no_tls_is_refused() {
    for (bytes, error) in [
        (&b"GET / HTTP/1.1\r\n"[..], HandshakeError::NotTls),
        (b"\x16\x02\0\0\x01", HandshakeError::NotTls),
        (b"\x16\x03\x01\xff\xff", HandshakeError::NotTls),
        (b"\x80\x2e\x01\x03\x03", HandshakeError::NotTls),
    ] {
        let (mut input, mut output) = (bytes.to_vec(), Vec::new());
        let mut handshake = Handshake::new(&acceptor());
        assert_eq!(
            handshake.advance(&mut input, &mut output).unwrap_err(),
            error
        );
        assert_eq!(output, [21, 3, 3, 0, 2, 2, 50], "a fatal decode_error");
        assert_eq!(
            handshake.advance(&mut input, &mut output).unwrap_err(),
            HandshakeError::Over
        );
    }
}

#[test]
fn a_handshake_without_an_end_is_refused() {
    // A ClientHello of 65,000 bytes, in records of 100 bytes.
    let mut handshake = Handshake::new(&acceptor());
    let mut output = Vec::new();
    let mut record = vec![22, 3, 1, 0, 100, 1, 0, 0xfd, 0xe8];
    record.resize(105, 0);
    let mut sent = 0;
    let error = loop {
        sent += record.len();
        assert!(sent < 70_000);
        if let Err(error) = handshake.advance(&mut record.clone(), &mut output) {
            break error;
        }
        record[5..9].fill(0);
    };
    assert_eq!((error, sent > 60_000), (HandshakeError::TooLong, true));
    assert_eq!(output, [21, 3, 3, 0, 2, 2, 50]);
}

#[test]
fn a_client_can_give_up() {
    let mut handshake = Handshake::new(&acceptor());
    let mut client = Client::new(&Arc::new(client_config(&suites())), "any.example");
    let mut output = Vec::new();
    assert!(matches!(
        handshake.advance(&mut client.output(), &mut output),
        Ok(Progress::More)
    ));
    let error = handshake
        .advance(&mut vec![21, 3, 3, 0, 2, 2, 48], &mut output)
        .unwrap_err();
    assert_eq!(
        error,
        HandshakeError::Failed(Error::AlertReceived(AlertDescription::UnknownCA))
    );
    // Anybody could have written this close_notify, so that it came is no more than a warning.
    let mut handshake = Handshake::new(&acceptor());
    let mut close_notify = vec![21, 3, 3, 0, 2, 1, 0];
    let progress = handshake.advance(&mut close_notify, &mut output).unwrap();
    assert!(matches!(progress, Progress::More) && close_notify.is_empty());
}

#[test]
fn a_forged_finished_is_refused() {
    for suite in suites() {
        let mut client = Client::new(&Arc::new(client_config(&[suite])), name_for(suite));
        let mut handshake = Handshake::new(&acceptor());
        let mut output = Vec::new();
        handshake
            .advance(&mut client.output(), &mut output)
            .unwrap();
        client.take(&output).unwrap();
        let mut flight = client.output();
        *flight.last_mut().unwrap() ^= 1;
        output.clear();
        let error = handshake.advance(&mut flight, &mut output).unwrap_err();
        assert_eq!(error, HandshakeError::Failed(Error::DecryptError));
        let told = client.take(&output);
        assert_eq!(
            told.unwrap_err(),
            Error::AlertReceived(AlertDescription::BadRecordMac)
        );
    }
}

/// A ClientHello of TLS 1.0 or 1.1 has none of the extensions that came with TLS 1.2.
#[test]
fn an_old_client_is_told_that_its_version_is_why() {
    for (minor, alert) in [(0, 70), (1, 70), (2, 70), (3, 40)] {
        let suites = [0, 2, 0xc0, 0x13];
        let hello = [&[3, minor][..], &[7; 32], &[0], &suites, &[1, 0]].concat();
        let message = [&[1, 0, 0, hello.len() as u8], &hello[..]].concat();
        for cut in [message.len(), 20] {
            let (mut input, mut output) = (Vec::new(), Vec::new());
            for part in message.chunks(cut) {
                input.extend([22, 3, 1, 0, part.len() as u8]);
                input.extend(part);
            }
            let refused = Handshake::new(&acceptor()).advance(&mut input, &mut output);
            let is_old = HandshakeError::from(Error::from(PeerIncompatible::Tls12NotOffered));
            assert_eq!(refused.unwrap_err() == is_old, alert == 70);
            assert_eq!(output, [21, 3, 3, 0, 2, 2, alert]);
        }
    }
}

/// The client has a ticket, from elsewhere, that lets it send early data. Such data is thrown away.
#[test]
fn early_data_is_passed_over() {
    let suite = ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
    let mut server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(RSA.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(RSA.as_bytes()).unwrap(),
        )
        .unwrap();
    server.max_early_data_size = 1 << 20;
    let server = Arc::new(server);
    for (sizes, byte_by_byte) in [
        (&[100][..], true),
        (&[1000; 8], false),
        (&[15_000], false),
        (&[1; 300], false),
    ] {
        let mut config = client_config(&[suite]);
        config.enable_early_data = true;
        let config = Arc::new(config);
        let mut client = Client::new(&config, "rsa.example");
        let mut elsewhere = ServerConnection::new(Arc::clone(&server)).unwrap();
        for _ in 0..3 {
            elsewhere.read_tls(&mut &client.output()[..]).unwrap();
            elsewhere.process_new_packets().unwrap();
            let mut output = Vec::new();
            while elsewhere.wants_write() {
                elsewhere.write_tls(&mut output).unwrap();
            }
            client.take(&output).unwrap();
        }

        let mut client = Client::new(&config, "rsa.example");
        for &size in sizes {
            let early = vec![7; size];
            std::io::Write::write_all(&mut client.tls.early_data().unwrap(), &early).unwrap();
        }
        let acceptor = acceptor();
        let mut handshake = Handshake::new(&acceptor);
        let (mut input, mut session) = (Vec::new(), None);
        for _ in 0..3 {
            let bytes = client.output();
            let step = if byte_by_byte { 1 } else { bytes.len().max(1) };
            for part in bytes.chunks(step) {
                input.extend(part);
                let mut output = Vec::new();
                if session.is_none()
                    && let Progress::Done(done) =
                        handshake.advance(&mut input, &mut output).unwrap()
                {
                    session = Some(done);
                }
                client.take(&output).unwrap();
            }
        }
        assert!(!client.tls.is_early_data_accepted());
        let mut pair = Pair {
            client,
            session: session.unwrap(),
            input,
            received: Vec::new(),
        };
        pair.ask(b"in time");
        pair.answer(b"indeed");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever becomes of a client's flights on the way, nothing panics, and no session comes of it.
    #[test]
    fn a_damaged_handshake_is_refused(
        number in 0..9_usize,
        is_second in any::<bool>(),
        at in any::<prop::sample::Index>(),
        change in 1..=255_u8,
        is_insertion in any::<bool>(),
    ) {
        let suite = suites()[number];
        let mut client = Client::new(&Arc::new(client_config(&[suite])), name_for(suite));
        let mut handshake = Handshake::new(&acceptor());
        let mut bytes = client.output();
        if is_second {
            let mut output = Vec::new();
            handshake.advance(&mut bytes, &mut output).unwrap();
            client.take(&output).unwrap();
            bytes = client.output();
        }
        let at = at.index(bytes.len());
        let is_version = !is_insertion && versions(&bytes).contains(&at);
        match is_insertion {
            true => bytes.insert(at, change),
            false => bytes[at] ^= change,
        }
        let (mut input, mut output) = (Vec::new(), Vec::new());
        for part in bytes.chunks(7) {
            input.extend(part);
            match handshake.advance(&mut input, &mut output) {
                Ok(Progress::Done(_)) => prop_assert!(is_second && is_version),
                Ok(Progress::More) => {}
                Err(_) => break,
            }
        }
    }
}

/// Where records have their version, which counts for nothing (RFC 8446, section 5.1).
fn versions(bytes: &[u8]) -> Vec<usize> {
    let (mut versions, mut start) = (Vec::new(), 0);
    while let Some([_, _, _, high, low]) = bytes[start..].first_chunk() {
        versions.extend([start + 1, start + 2]);
        start += 5 + usize::from(u16::from_be_bytes([*high, *low]));
    }
    versions
}
