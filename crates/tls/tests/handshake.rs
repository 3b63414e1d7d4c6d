//! Handshakes with a client of rustls.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::Arc;

use baton_tls::{Acceptor, Handshake, HandshakeError, Progress, Version};
use common::*;
use rustls::crypto::ring;
use rustls::{AlertDescription, ClientConfig, Error, HandshakeKind};

#[test]
fn every_suite_is_agreed_upon() {
    assert_eq!(suites().len(), baton_tls::Suite::ALL.len());
    for suite in suites() {
        let mut pair = Pair::new(suite);
        let session = &pair.session;
        assert_eq!(session.suite().number(), u16::from(suite.suite()));
        assert_eq!(session.version() == Version::Tls13, suite.tls13().is_some());
        assert_eq!(session.server_name(), Some(name_for(suite)));
        assert_eq!(session.alpn(), None);
        pair.ask(b"a question");
        pair.answer(b"an answer");
    }
}

#[test]
fn a_handshake_may_come_byte_by_byte() {
    let acceptor = acceptor();
    for suite in suites() {
        let mut client = Client::new(&Arc::new(client_config(&[suite])), name_for(suite));
        let mut handshake = Handshake::new(&acceptor);
        let mut input = Vec::new();
        let mut session = None;
        while session.is_none() {
            let bytes = client.output();
            assert!(!bytes.is_empty());
            for byte in bytes {
                let mut output = Vec::new();
                input.push(byte);
                assert!(session.is_none(), "nothing is behind the handshake");
                if let Progress::Done(done) = handshake.advance(&mut input, &mut output).unwrap() {
                    session = Some(done);
                }
                for byte in output {
                    client.take(&[byte]).unwrap();
                }
            }
        }
        assert!(!client.tls.is_handshaking() && input.is_empty());
        assert_eq!(
            handshake.advance(&mut input, &mut Vec::new()).unwrap_err(),
            HandshakeError::Over
        );
    }
}

/// The client's last flight and its first data come together, cut in two at each place.
#[test]
fn data_behind_the_handshake_is_the_sessions() {
    for suite in [
        ring::cipher_suite::TLS13_AES_128_GCM_SHA256,
        ring::cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    ] {
        let acceptor = acceptor();
        let config = Arc::new(client_config(&[suite]));
        let mut length = 1;
        let mut at = 0;
        while at <= length {
            let mut client = Client::new(&config, name_for(suite));
            // In TLS 1.2 a client may not send data before the server's Finished, unless it resumes.
            let mut handshake = Handshake::new(&acceptor);
            let mut output = Vec::new();
            assert!(matches!(
                handshake.advance(&mut client.output(), &mut output),
                Ok(Progress::More)
            ));
            client.take(&output).unwrap();
            client.say(b"early bird");
            let mut flight = client.output();
            length = flight.len();
            let rest = flight.split_off(at);
            let mut input = flight;
            let mut output = Vec::new();
            let mut session = None;
            if let Progress::Done(done) = handshake.advance(&mut input, &mut output).unwrap() {
                session = Some(done);
            }
            input.extend(rest);
            let mut session = match session {
                Some(session) => session,
                None => match handshake.advance(&mut input, &mut output).unwrap() {
                    Progress::Done(session) => session,
                    Progress::More => panic!("the whole flight is there"),
                },
            };
            client.take(&output).unwrap();
            input.extend(client.output());
            let (mut plain, mut output) = (Vec::new(), Vec::new());
            session
                .receive(&mut input, &mut plain, &mut output)
                .unwrap();
            assert_eq!(plain, b"early bird", "{suite:?}, cut at {at}");
            at += 1;
        }
    }
}

#[test]
fn a_retry_is_survived() {
    let suite = ring::cipher_suite::TLS13_AES_256_GCM_SHA384;
    let mut config = client_config(&[suite]);
    let mut provider = (**config.crypto_provider()).clone();
    // A group that the server knows only from the list, because the client's share is of one that it does not have.
    provider.kx_groups = vec![&NoGroup, ring::kx_group::SECP384R1];
    config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    config
        .dangerous()
        .set_certificate_verifier(any_certificate());
    let mut pair = Pair::of(&acceptor(), &Arc::new(config), "any.example");
    assert_eq!(
        pair.client.tls.handshake_kind(),
        Some(HandshakeKind::FullWithHelloRetryRequest)
    );
    assert_eq!(pair.session.server_name(), Some("any.example"));
    pair.ask(b"after all");
}

/// A group of the kind that only the client has.
#[derive(Debug)]
struct NoGroup;

impl rustls::crypto::SupportedKxGroup for NoGroup {
    fn start(&self) -> Result<Box<dyn rustls::crypto::ActiveKeyExchange>, Error> {
        struct Renamed(Box<dyn rustls::crypto::ActiveKeyExchange>);
        impl rustls::crypto::ActiveKeyExchange for Renamed {
            fn complete(
                self: Box<Self>,
                peer: &[u8],
            ) -> Result<rustls::crypto::SharedSecret, Error> {
                self.0.complete(peer)
            }
            fn pub_key(&self) -> &[u8] {
                self.0.pub_key()
            }
            fn group(&self) -> rustls::NamedGroup {
                rustls::NamedGroup::secp521r1
            }
        }
        ring::kx_group::X25519
            .start()
            .map(|kx| Box::new(Renamed(kx)) as _)
    }

    fn name(&self) -> rustls::NamedGroup {
        rustls::NamedGroup::secp521r1
    }
}

#[test]
fn the_first_common_protocol_is_agreed_upon() {
    let acceptor =
        Acceptor::new(certificates(&[RSA]), &[b"h2", b"http/1.1"], tickets(1), b"").unwrap();
    for (offer, chosen) in [
        (&[&b"http/1.1"[..], b"h2"][..], Some(&b"h2"[..])),
        (&[b"http/1.1"], Some(b"http/1.1")),
        (&[], None),
    ] {
        let mut config = client_config(&suites());
        config.alpn_protocols = offer.iter().map(|protocol| protocol.to_vec()).collect();
        let pair = Pair::of(&acceptor, &Arc::new(config), "rsa.example");
        assert_eq!(pair.session.alpn(), chosen);
        assert_eq!(pair.client.tls.alpn_protocol(), chosen);
        assert_eq!(pair.migrate().session.alpn(), chosen);
    }
    let mut config = client_config(&suites());
    config.alpn_protocols = vec![b"other".to_vec()];
    let mut client = Client::new(&Arc::new(config), "rsa.example");
    let mut output = Vec::new();
    let refused = Handshake::new(&acceptor).advance(&mut client.output(), &mut output);
    assert!(matches!(
        refused,
        Err(HandshakeError::Failed(Error::NoApplicationProtocol))
    ));
    let told = client.take(&output).unwrap_err();
    assert_eq!(
        told,
        Error::AlertReceived(AlertDescription::NoApplicationProtocol)
    );
}
