//! Sessions as bytes.

use proptest::prelude::*;

use super::*;
use crate::suite::Version;
use crate::transfer::ImportError;

#[test]
fn nothing_is_lost_on_the_way() {
    for &suite in Suite::ALL {
        for (name, alpn) in [
            (None, None),
            (Some(""), Some(&b""[..])),
            (Some("any.example"), Some(b"h2")),
        ] {
            let (mut server, _) = pair(suite);
            server.server_name = name.map(str::to_owned);
            server.alpn = alpn.map(<[u8]>::to_vec);
            server.limits.empty = 1;
            server.limits.key_updates = 2;
            server.limits.warnings = 3;
            server.ends.closed = true;
            server.update_requested = suite.version() == Version::Tls13;
            let told = format!("{server:?}");
            let (limits, update_requested) = (server.limits, server.update_requested);
            let bytes = server.export();
            assert!(bytes.len() <= bytes.capacity());
            let server = Session::import(&bytes).unwrap();
            assert_eq!(format!("{server:?}"), told);
            assert_eq!(
                (server.limits, server.update_requested),
                (limits, update_requested)
            );
            assert_eq!(server.alpn(), alpn);
            assert_eq!(*server.export(), *bytes);
        }
    }
}

/// The longest session is written without moving about in memory, which would leave secrets behind.
#[test]
fn the_export_does_not_grow() {
    for &suite in Suite::ALL {
        let (mut server, _) = pair(suite);
        server.server_name = Some("n".repeat(255));
        server.alpn = Some(vec![b'p'; 255]);
        let bytes = server.export();
        assert!(
            bytes.len() + 3 < 128 + 255 + 255 + 3,
            "{suite:?}: {}",
            bytes.len()
        );
        assert_eq!(bytes.capacity(), 128 + 255 + 255, "{suite:?}");
    }
}

#[test]
fn what_is_no_session_is_refused() {
    let export = || pair(Suite::Aes128GcmSha256).0.export();
    let import = |bytes: &[u8]| Session::import(bytes).unwrap_err();
    for length in 0..export().len() {
        assert_eq!(
            import(&export()[..length]),
            ImportError::Malformed("fewer bytes")
        );
    }
    assert_eq!(
        import(&[&export()[..], &[0]].concat()),
        ImportError::Malformed("more bytes")
    );
    for (at, to, error) in [
        (0, 2, ImportError::Format(2)),
        (2, 0xff, ImportError::Suite(0x13ff)),
        (3, 16, ImportError::Malformed("a state")),
        (7, 1, ImportError::Malformed("a record's number")),
        (87, 2, ImportError::Malformed("a text")),
    ] {
        let mut bytes = export();
        bytes[at] = to;
        assert_eq!(import(&bytes), error, "{at}");
    }
    // TLS 1.2 has no key updates.
    let mut bytes = pair(Suite::EcdheRsaAes128Gcm).0.export();
    bytes[3] = 8;
    assert_eq!(import(&bytes), ImportError::Malformed("a state"));
}

proptest! {
    #[test]
    fn damaged_sessions_do_no_harm(
        number in 0..Suite::ALL.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let (server, mut client) = pair(Suite::ALL[number]);
        let mut bytes = server.export().to_vec();
        for (at, to) in changes {
            let at = at.index(bytes.len());
            bytes[at] = to;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(mut server) = Session::import(&bytes) {
            let mut output = Vec::new();
            let _ = server.send(b"data", &mut output);
            let _ = receive(&mut server, &record(&mut client, Content::Data, b"data"));
            server.update_key(&mut output);
            server.close(&mut output);
            prop_assert!(Session::import(&server.export()).is_ok());
        }
    }

    #[test]
    fn random_bytes_are_no_session(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Session::import(&bytes);
    }
}
