//! Each rule of the session by itself.

use std::net::SocketAddr;

use baton_wire::Clock;
use eop_protocol::wire::{EopKey, Head, Hello, Parsed, Redirect, Refused, parse};
use eop_protocol::{
    Allow, Client, ClientOptions, Error, Heard, Resend, Server, ServerOptions, TOKEN_LIFETIME,
    Verdict,
};

fn at(last: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], 80))
}

fn redirect(to: u8, answers: bool) -> Head {
    Head::Redirect(Redirect {
        target: at(to),
        answers,
        token: None,
        taken: None,
    })
}

fn kept() -> ClientOptions {
    ClientOptions {
        resend: Resend::Session { limit: 1000 },
        ..ClientOptions::default()
    }
}

fn connected(options: ClientOptions) -> Client {
    let mut client = Client::new(options, at(1));
    assert!(client.handle_connected().hello.is_none());
    client
}

#[test]
fn an_early_redirect_is_redone_by_the_application() {
    let mut client = connected(ClientOptions::default());
    client.handle_send(b"one").unwrap();
    let verdict = client.handle_message(&redirect(2, false));
    assert_eq!(verdict, Ok(Verdict::Redo { unanswered: 1 }));
    assert_eq!(client.target(), at(2));
    assert!(client.is_moving());
    let opening = client.handle_connected();
    assert!(opening.again.is_empty());
    client.handle_send(b"one").unwrap();
    assert_eq!(client.handle_message(&Head::Normal), Ok(Verdict::Deliver));
    assert_eq!(client.unanswered(), 0);
}

#[test]
fn a_redirect_before_anything_was_asked_is_nobodys_business() {
    let mut client = connected(ClientOptions::default());
    assert_eq!(
        client.handle_message(&redirect(2, false)),
        Ok(Verdict::Move)
    );
}

#[test]
fn or_by_the_session() {
    let mut client = connected(kept());
    client.handle_send(b"one").unwrap();
    client.handle_send(b"two").unwrap();
    assert_eq!(
        client.handle_message(&redirect(2, false)),
        Ok(Verdict::Move)
    );
    let again: Vec<_> = client.handle_connected().again.iter().cloned().collect();
    assert_eq!(again, [b"one".to_vec(), b"two".to_vec()]);
}

#[test]
fn a_late_redirect_answers_the_oldest_and_only_that() {
    let mut client = connected(ClientOptions::default());
    client.handle_send(b"one").unwrap();
    client.handle_send(b"two").unwrap();
    let verdict = client.handle_message(&redirect(2, true));
    assert_eq!(verdict, Ok(Verdict::DeliverAndMove { redo: 1 }));
    let mut client = connected(kept());
    client.handle_send(b"one").unwrap();
    client.handle_send(b"two").unwrap();
    let verdict = client.handle_message(&redirect(2, true));
    assert_eq!(verdict, Ok(Verdict::DeliverAndMove { redo: 0 }));
    let again: Vec<_> = client.handle_connected().again.iter().cloned().collect();
    assert_eq!(again, [b"two".to_vec()]);
}

#[test]
fn what_is_down_is_left_for_what_was_before() {
    let mut client = connected(kept());
    client.handle_send(b"one").unwrap();
    client.handle_message(&redirect(2, false)).unwrap();
    assert_eq!(client.handle_unreachable(), Ok(()));
    assert_eq!(client.target(), at(1));
    let opening = client.handle_connected();
    assert_eq!(opening.hello.unwrap().fell_back_from, Some(at(2)));
    assert_eq!(opening.again.len(), 1);
    // The server has been told that nobody answers there, and redirects there again.
    let server = at(2);
    assert_eq!(
        client.handle_message(&redirect(2, false)),
        Err(Error::Loop { server })
    );
    assert_eq!(client.handle_send(b"two"), Err(Error::Ended));
}

#[test]
fn nothing_to_fall_back_to_ends_the_session() {
    let mut client = Client::new(kept(), at(1));
    let server = at(1);
    assert_eq!(
        client.handle_unreachable(),
        Err(Error::Unreachable { server })
    );
    assert!(!client.is_moving());
}

#[test]
fn a_request_that_may_have_been_done_is_not_sent_again() {
    let mut client = connected(kept());
    client.handle_send(b"one").unwrap();
    let lost = Error::Lost {
        server: at(1),
        unanswered: 1,
    };
    assert_eq!(client.handle_lost(), Err(lost));

    let idempotent = ClientOptions {
        idempotent: true,
        ..kept()
    };
    let mut client = connected(idempotent);
    client.handle_send(b"one").unwrap();
    for _ in 0..ClientOptions::default().hops {
        assert_eq!(client.handle_lost(), Ok(true));
        assert_eq!(client.handle_connected().again.len(), 1);
    }
    // The request kills every server that it is sent to.
    assert!(matches!(client.handle_lost(), Err(Error::Hops { .. })));
}

#[test]
fn a_quiet_end_is_an_end() {
    let mut client = connected(kept());
    assert_eq!(client.handle_lost(), Ok(false));
}

#[test]
fn circles_and_long_ways_end() {
    let mut client = connected(kept());
    client.handle_send(b"one").unwrap();
    for to in [2, 3] {
        client.handle_message(&redirect(to, false)).unwrap();
        client.handle_connected();
    }
    let server = at(2);
    assert_eq!(
        client.handle_message(&redirect(2, false)),
        Err(Error::Loop { server })
    );

    let mut client = connected(kept());
    client.handle_send(b"one").unwrap();
    for to in 2..10 {
        client.handle_message(&redirect(to, false)).unwrap();
        client.handle_connected();
    }
    let too_far = Error::Hops {
        hops: 8,
        server: at(10),
    };
    assert_eq!(client.handle_message(&redirect(10, false)), Err(too_far));
}

#[test]
fn a_server_cannot_send_its_clients_to_what_only_they_reach() {
    let public: SocketAddr = "192.0.2.1:80".parse().unwrap();
    let allow = Allow::default();
    let cases = [
        ("192.0.2.1:80", "198.51.100.1:80", true),
        ("192.0.2.1:80", "[2001:db8::1]:80", true),
        ("192.0.2.1:80", "10.0.0.1:80", false),
        ("192.0.2.1:80", "172.16.0.1:80", false),
        ("192.0.2.1:80", "192.168.0.1:80", false),
        ("192.0.2.1:80", "100.64.0.1:80", false),
        ("192.0.2.1:80", "127.0.0.1:80", false),
        ("192.0.2.1:80", "169.254.169.254:80", false),
        ("192.0.2.1:80", "[::1]:80", false),
        ("192.0.2.1:80", "[fe80::1]:80", false),
        ("192.0.2.1:80", "[fd00::1]:80", false),
        ("192.0.2.1:80", "[::ffff:10.0.0.1]:80", false),
        ("192.0.2.1:80", "0.0.0.0:80", false),
        ("192.0.2.1:80", "224.0.0.1:80", false),
        ("10.0.0.1:80", "10.0.0.2:80", true),
        ("10.0.0.1:80", "192.0.2.1:80", true),
        ("10.0.0.1:80", "127.0.0.1:80", false),
        ("10.0.0.1:80", "169.254.169.254:80", false),
        ("127.0.0.1:80", "127.0.0.2:80", true),
        ("127.0.0.1:80", "10.0.0.1:80", true),
        ("127.0.0.1:80", "255.255.255.255:80", false),
    ];
    for (from, target, expected) in cases {
        let result = allow.check(from.parse().unwrap(), target.parse().unwrap());
        assert_eq!(result.is_ok(), expected, "{from} to {target}");
    }
    let only = Allow::only(vec!["10.0.0.0/30".parse().unwrap()]);
    assert!(only.check(public, at(3)).is_ok());
    assert!(only.check(public, at(4)).is_err());
    assert!(only.check(public, public).is_err());

    let mut client = Client::new(kept(), public);
    client.handle_connected();
    client.handle_send(b"one").unwrap();
    assert_eq!(
        client.handle_message(&redirect(2, false)),
        Ok(Verdict::Move)
    );
    assert_eq!(client.target(), public);
    assert_eq!(client.not_allowed().unwrap().target, at(2));
    let hello = client.handle_connected().hello.unwrap();
    assert_eq!(hello.fell_back_from, Some(at(2)));
}

#[test]
fn prefixes_that_are_none_are_refused() {
    use eop_protocol::Prefix;
    for text in [
        "10.0.0.0/33",
        "fd00::/129",
        "ten/8",
        "10.0.0.0/",
        "10.0.0.0/x",
    ] {
        let parsed = text.parse::<Prefix>();
        assert_eq!(parsed.is_ok(), text == "10.0.0.0/", "{text}");
    }
}

#[test]
fn what_cannot_be_kept_is_not_taken() {
    let options = ClientOptions {
        resend: Resend::Session { limit: 5 },
        ..ClientOptions::default()
    };
    let mut client = connected(options);
    client.handle_send(b"one").unwrap();
    let full = Error::Full { bytes: 6, limit: 5 };
    assert_eq!(client.handle_send(b"two"), Err(full));
    assert_eq!(client.unanswered(), 1);
    client.handle_message(&Head::Normal).unwrap();
    assert_eq!(client.handle_send(b"three"), Ok(()));
}

#[test]
fn only_a_server_of_the_cluster_opens_the_door() {
    let now = Clock::from_nanos(5_000_000_000);
    let guarded = ServerOptions {
        key: Some(EopKey::of(&"01".repeat(32).parse().unwrap())),
        redirected_only: true,
    };
    let peer: SocketAddr = "192.0.2.1:4000".parse().unwrap();
    let open = ServerOptions {
        redirected_only: false,
        ..guarded.clone()
    };
    let mut first = Server::new(open.clone(), at(1), peer);
    let bytes = first.handle_redirect(None, at(2), now).unwrap();
    let Ok(Parsed::Whole {
        head: Head::Redirect(redirect),
        ..
    }) = parse(&bytes, 0)
    else {
        panic!("no redirect: {bytes:?}");
    };
    let hello = |token| {
        Head::Hello(Hello {
            token,
            fell_back_from: None,
        })
    };
    let other_port: SocketAddr = "192.0.2.1:4001".parse().unwrap();
    let fresh = || Server::new(guarded.clone(), at(2), other_port);
    assert!(redirect.token.is_some());
    let good = hello(redirect.token);
    assert_eq!(fresh().handle_message(&good, now), Ok(Heard::Nothing));
    let missing = Err(Error::Refused(Refused::Missing));
    assert_eq!(fresh().handle_message(&hello(None), now), missing);
    assert_eq!(fresh().handle_message(&Head::Normal, now), missing);
    let late = Clock::from_nanos(now.as_nanos() + TOKEN_LIFETIME.as_nanos() as u64 + 1);
    let expired = Err(Error::Refused(Refused::Expired));
    assert_eq!(fresh().handle_message(&good, late), expired);
    let forged = Err(Error::Refused(Refused::Forged));
    let mut elsewhere = Server::new(guarded.clone(), at(3), other_port);
    assert_eq!(elsewhere.handle_message(&good, now), forged);
    // A bad token is refused even if none is needed.
    let mut elsewhere = Server::new(open, at(3), other_port);
    assert_eq!(elsewhere.handle_message(&good, now), forged);
}

#[test]
fn a_server_that_has_left_says_and_hears_nothing() {
    let peer: SocketAddr = "192.0.2.1:4000".parse().unwrap();
    let mut server = Server::new(ServerOptions::default(), at(1), peer);
    let now = Clock::from_nanos(0);
    assert_eq!(
        server.handle_message(&Head::Normal, now),
        Ok(Heard::Deliver)
    );
    let bytes = server.handle_redirect(Some(7), at(2), now).unwrap();
    assert_eq!(bytes, [0, 2, 0, 80, 10, 0, 0, 2, 0, 0, 0, 7]);
    assert_eq!(
        server.handle_message(&Head::Normal, now),
        Ok(Heard::Nothing)
    );
    assert_eq!(server.handle_send(1), Err(Error::Ended));
    assert_eq!(server.handle_redirect(None, at(3), now), Err(Error::Ended));
}

#[test]
fn hello_comes_first_or_not_at_all() {
    let peer: SocketAddr = "192.0.2.1:4000".parse().unwrap();
    let mut server = Server::new(ServerOptions::default(), at(1), peer);
    let now = Clock::from_nanos(0);
    let hello = Head::Hello(Hello::default());
    assert_eq!(server.handle_message(&hello, now), Ok(Heard::Probe));
    assert_eq!(server.handle_message(&hello, now), Err(Error::Unexpected));

    let probe = ClientOptions {
        probe: true,
        ..kept()
    };
    let mut client = Client::new(probe, at(1));
    assert_eq!(client.handle_connected().hello, Some(Hello::default()));
    assert_eq!(client.handle_message(&Head::Welcome), Ok(Verdict::Nothing));
    // The server that the client is sent to serves plain clients too.
    assert_eq!(
        client.handle_message(&redirect(2, false)),
        Ok(Verdict::Move)
    );
    assert_eq!(client.handle_connected().hello, Some(Hello::default()));
    assert_eq!(client.handle_message(&Head::Welcome), Ok(Verdict::Nothing));
    assert_eq!(
        client.handle_message(&Head::Welcome),
        Err(Error::Unexpected)
    );
}
