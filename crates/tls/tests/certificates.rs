//! Files of certificates, and which of them a client is shown.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use baton_tls::{Acceptor, CertificateError, CertificateProblem, Certificates};
use common::*;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

#[test]
fn a_client_is_shown_the_certificate_of_its_name() {
    let pems = [
        ecdsa(&["first.example", "*.first.example"]),
        ecdsa(&["exact.wild.example", "UPPER.example"]),
        ecdsa(&["*.wild.example"]),
        ecdsa(&["both.example"]),
        RSA.to_owned(),
        ecdsa(&["both.example", "192.0.2.1"]),
    ];
    let texts: Vec<&str> = pems.iter().map(String::as_str).collect();
    let acceptor = Acceptor::new(certificates(&texts), &[], tickets(1), b"").unwrap();
    let config = Arc::new(client_config(&suites()));
    for (name, number) in [
        ("first.example", 0),
        ("a.first.example", 0),
        ("exact.wild.example", 1),
        ("upper.example", 1),
        ("UPPER.Example", 1),
        ("other.wild.example", 2),
        ("a.b.wild.example", 0),
        ("wild.example", 0),
        ("both.example", 3),
        ("rsa.example", 4),
        ("unknown", 0),
        ("192.0.2.1", 0),
        ("2001:db8::1", 0),
    ] {
        let pair = Pair::of(&acceptor, &config, name);
        let shown = &pair.client.tls.peer_certificates().unwrap()[0];
        assert_eq!(
            *shown,
            CertificateDer::from_pem_slice(pems[number].as_bytes()).unwrap(),
            "{name}"
        );
        let is_address = name.parse::<std::net::IpAddr>().is_ok();
        let name = name.to_ascii_lowercase();
        assert_eq!(
            pair.session.server_name(),
            (!is_address).then_some(&name[..])
        );
        assert_eq!(
            pair.migrate().session.server_name(),
            (!is_address).then_some(&name[..])
        );
    }
}

/// Of two certificates for a name, a client is shown the one of which it can verify signatures.
#[test]
fn a_client_is_shown_a_certificate_that_it_understands() {
    let both = [ecdsa(&["rsa.example"]), RSA.to_owned()];
    for order in [[0, 1], [1, 0]] {
        let texts = order.map(|number: usize| both[number].as_str());
        let acceptor = Acceptor::new(certificates(&texts), &[], tickets(1), b"").unwrap();
        for suite in suites().into_iter().filter(|suite| suite.tls13().is_none()) {
            let pair = Pair::of(&acceptor, &Arc::new(client_config(&[suite])), "rsa.example");
            let shown = &pair.client.tls.peer_certificates().unwrap()[0];
            let number = usize::from(format!("{suite:?}").contains("RSA"));
            assert_eq!(
                *shown,
                CertificateDer::from_pem_slice(both[number].as_bytes()).unwrap()
            );
        }
    }
}

#[test]
fn a_chain_is_sent_whole() {
    let leaf = ecdsa(&["leaf.example"]);
    let other = ecdsa(&["other.example"]);
    let (other, _) = other.split_once("-----BEGIN PRIVATE").unwrap();
    let acceptor = Acceptor::new(certificates(&[&(leaf + other)]), &[], tickets(1), b"").unwrap();
    let pair = Pair::of(
        &acceptor,
        &Arc::new(client_config(&suites())),
        "leaf.example",
    );
    assert_eq!(pair.client.tls.peer_certificates().unwrap().len(), 2);
}

fn problem(text: &str) -> CertificateProblem {
    let (_directory, paths) = files(&[&ecdsa(&["good.example"]), text]);
    match Certificates::load(&paths).unwrap_err() {
        CertificateError::File { file, problem } => {
            assert_eq!(file, paths[1]);
            problem
        }
        CertificateError::NoFile => panic!("there are files"),
    }
}

#[test]
fn what_is_wrong_with_a_file_is_told() {
    let good = ecdsa(&["any.example"]);
    let (certificate, key) = good.split_at(good.find("-----BEGIN PRIVATE").unwrap());
    let other = ecdsa(&["any.example"]);
    let (other_certificate, _) = other.split_at(other.find("-----BEGIN PRIVATE").unwrap());
    assert!(matches!(problem(""), CertificateProblem::NoCertificate));
    assert!(matches!(problem(key), CertificateProblem::NoCertificate));
    assert!(matches!(problem(certificate), CertificateProblem::NoKey));
    let encrypted = good.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    assert!(matches!(problem(&encrypted), CertificateProblem::NoKey));
    assert!(matches!(
        problem(&(good.clone() + key)),
        CertificateProblem::SeveralKeys(2)
    ));
    assert!(matches!(
        problem(&(other_certificate.to_owned() + key)),
        CertificateProblem::KeyMismatch
    ));
    assert!(matches!(
        problem(&(other_certificate.to_owned() + &good)),
        CertificateProblem::KeyMismatch
    ));
    assert!(matches!(
        problem(certificate.trim_end_matches("-\n")),
        CertificateProblem::NotPem(_)
    ));
    assert!(matches!(
        problem(&good.replace("MII", "?II")),
        CertificateProblem::NotPem(_)
    ));
    let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(matches!(
        problem(&(nonsense.to_owned() + &good)),
        CertificateProblem::BadCertificate { number: 1, .. }
    ));
    assert!(matches!(
        problem(&(good.clone() + nonsense)),
        CertificateProblem::BadCertificate { number: 2, .. }
    ));
    let no_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    assert!(matches!(
        problem(&(certificate.to_owned() + no_key)),
        CertificateProblem::BadKey(_)
    ));
}

#[test]
fn a_file_that_cannot_be_read_is_told() {
    let error = Certificates::load(&[Path::new("/nowhere/at.pem")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the certificate file /nowhere/at.pem cannot be read (No such file or directory (os error 2)): see that it \
         exists, and that this program's user may read it"
    );
    let none: [&Path; 0] = [];
    assert!(matches!(
        Certificates::load(&none),
        Err(CertificateError::NoFile)
    ));
}

#[test]
fn a_key_that_others_can_read_is_warned_of() {
    let (_directory, paths) = files(&[&ecdsa(&["any.example"]), RSA]);
    let warnings = |modes: [u32; 2]| {
        for (path, mode) in paths.iter().zip(modes) {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        }
        let certificates = Certificates::load(&paths).unwrap();
        certificates
            .warnings()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(warnings([0o600, 0o400]), <[String; 0]>::default());
    let expected = format!(
        "the certificate file {} has the mode 0640, which lets others than its owner at its private key: \
         `chmod 600` it",
        paths[1].display()
    );
    assert_eq!(warnings([0o600, 0o640]), [expected]);
    assert_eq!(warnings([0o604, 0o644]).len(), 2);
}

/// RSA keys as PKCS#1, and P-256 keys as SEC1, as older programs write them.
#[test]
fn older_formats_of_keys_are_read() {
    let rsa = include_str!("data/rsa_pkcs1.pem");
    let sec1 = include_str!("data/p256_sec1.pem");
    assert!(rsa.contains("BEGIN RSA PRIVATE KEY") && sec1.contains("BEGIN EC PRIVATE KEY"));
    let acceptor = Acceptor::new(certificates(&[rsa, sec1]), &[], tickets(1), b"").unwrap();
    let config = Arc::new(client_config(&suites()));
    for name in ["rsa.example", "sec1.example"] {
        Pair::of(&acceptor, &config, name).ask(b"x");
    }
}

#[test]
fn debug_output_has_no_secret() {
    let text = format!("{:?}", acceptor());
    assert!(text.contains("any.example") && text.len() < 100_000);
    assert!(!text.contains("PrivateKeyDer"));
}
