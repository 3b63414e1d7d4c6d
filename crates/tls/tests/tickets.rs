//! Sessions that clients of rustls resume.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::Arc;

use baton_tls::Acceptor;
use common::*;
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Resumption, Tls12ClientSessionValue,
    Tls13ClientSessionValue,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, HandshakeKind, NamedGroup};

/// Connects, says something, and returns how the handshake went.
fn kind(acceptor: &Acceptor, config: &Arc<ClientConfig>, name: &str) -> HandshakeKind {
    let mut pair = Pair::of(acceptor, config, name);
    pair.ask(b"x");
    pair.answer(b"y");
    let mut pair = pair.migrate();
    pair.ask(b"x");
    pair.answer(b"y");
    assert_eq!(pair.session.server_name(), Some(name));
    pair.client.tls.handshake_kind().unwrap()
}

/// The sessions of a client that takes all servers for the same one.
#[derive(Debug)]
struct AllTheSame(ClientSessionMemoryCache);

impl Default for AllTheSame {
    fn default() -> Self {
        Self(ClientSessionMemoryCache::new(8))
    }
}

fn same() -> ServerName<'static> {
    ServerName::try_from("same.example").unwrap()
}

impl ClientSessionStore for AllTheSame {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.0.set_kx_hint(same(), group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.0.kx_hint(&same())
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.0.set_tls12_session(same(), value);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.0.tls12_session(&same())
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.0.remove_tls12_session(&same());
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.0.insert_tls13_ticket(same(), value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0.take_tls13_ticket(&same())
    }
}

#[test]
fn tickets_are_good_wherever_their_key_is() {
    for suite in suites() {
        let config = Arc::new(client_config(&[suite]));
        let kind = |acceptor: &Acceptor| kind(acceptor, &config, name_for(suite));
        let keys = tickets(1);
        let here = acceptor_of(keys.clone(), b"a");
        assert_eq!(kind(&here), HandshakeKind::Full);
        assert_eq!(kind(&here), HandshakeKind::Resumed);
        assert_eq!(kind(&acceptor()), HandshakeKind::Resumed);
        keys.follow(&ticket_ring(2, &[]), 0);
        assert_eq!(kind(&here), HandshakeKind::Full, "{suite:?}");
        keys.follow(&ticket_ring(3, &[2]), 0);
        assert_eq!(kind(&here), HandshakeKind::Resumed);
    }
}

#[test]
fn a_session_is_resumed_at_its_service_only() {
    for suite in suites() {
        let config = Arc::new(client_config(&[suite]));
        let kind = |service| kind(&acceptor_of(tickets(1), service), &config, name_for(suite));
        assert_eq!(kind(b"a"), HandshakeKind::Full);
        assert_eq!(kind(b"a"), HandshakeKind::Resumed);
        assert_eq!(kind(b"b"), HandshakeKind::Full, "{suite:?}");
    }
}

#[test]
fn a_session_is_resumed_for_its_name_only() {
    for suite in suites() {
        // The certificate for all names.
        let file = match name_for(suite) {
            "rsa.example" => RSA.to_owned(),
            _ => ecdsa(&["any.example"]),
        };
        let acceptor = Acceptor::new(certificates(&[&file]), &[], tickets(1), b"").unwrap();
        let mut config = client_config(&[suite]);
        config.resumption = Resumption::store(Arc::new(AllTheSame::default()));
        let config = Arc::new(config);
        for name in ["one.example", "other.example", "one.example"] {
            assert_eq!(kind(&acceptor, &config, name), HandshakeKind::Full);
            assert_eq!(kind(&acceptor, &config, name), HandshakeKind::Resumed);
        }
    }
}
