//! A front that serves only clients that were redirected to it: which tokens it accepts, and from whom.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bed;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::SystemTime;

use baton_redsocks::agent::RedSocks;
use baton_redsocks::front::Servers;
use baton_virtual_sockets::{AppOptions, Far as _};
use baton_wire::{Clock, ClusterKey};
use eop_protocol::wire::{EopKey, Head, Hello, Token};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use bed::{echo, front, to};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const REQUEST: &[u8] = b"abc";

fn key(digit: &str) -> EopKey {
    let key: ClusterKey = digit.repeat(64).parse().unwrap();
    EopKey::of(&key)
}

fn hello(token: Option<Token>) -> Vec<u8> {
    Head::Hello(Hello {
        token,
        fell_back_from: None,
    })
    .bytes(0)
}

/// A point in time that is this many seconds from now.
fn expiry(seconds: i64) -> Clock {
    let now = Clock::from(SystemTime::now()).as_nanos();
    Clock::from_nanos(now.saturating_add_signed(seconds * 1_000_000_000))
}

/// Sends `first` and then a request. Returns whether the request is answered. If it is not, the connection must have
/// been reset.
async fn is_served(at: SocketAddr, first: &[u8]) -> bool {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let sent = [first, &Head::normal(3), REQUEST].concat();
    stream.write_all(&sent).await.unwrap();
    let mut got = Vec::new();
    while !got.ends_with(REQUEST) {
        match stream.read_buf(&mut got).await {
            Ok(0) => panic!("an end, which would be an answer of no bytes: {got:?}"),
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
                return false;
            }
        }
    }
    true
}

fn tokens(here: SocketAddr) -> Vec<(&'static str, Token)> {
    let elsewhere = SocketAddr::new(here.ip(), here.port() ^ 1);
    let other = Ipv4Addr::new(127, 0, 0, 2).into();
    vec![
        (
            "of another key",
            Token::new(&key("b"), here, CLIENT, expiry(30)),
        ),
        (
            "for another server",
            Token::new(&key("a"), elsewhere, CLIENT, expiry(30)),
        ),
        (
            "for another client",
            Token::new(&key("a"), here, other, expiry(30)),
        ),
        (
            "that has expired",
            Token::new(&key("a"), here, CLIENT, expiry(-1)),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_was_redirected_here_is_served() {
    let (at, counters) = front(Servers::Behind(echo(0).await), Some(key("a")), true);
    let good = Token::new(&key("a"), at, CLIENT, expiry(30));
    assert!(is_served(at, &hello(Some(good))).await);
    // A token is valid until it expires.
    assert!(is_served(at, &hello(Some(good))).await);
    assert_eq!(counters.refused.get(), 0);

    let mut refused = 0;
    for (what, token) in tokens(at) {
        assert!(!is_served(at, &hello(Some(token))).await, "a token {what}");
        refused += 1;
        assert_eq!(counters.refused.get(), refused, "a token {what}");
    }
    assert!(!is_served(at, &hello(None)).await, "no token");
    assert!(!is_served(at, b"").await, "no HELLO");
    assert!(
        !is_served(at, b"GET / HTTP/1.1\r\n\r\n").await,
        "a plain client"
    );
    assert_eq!(counters.refused.get(), refused + 3);
    assert_eq!((counters.relayed.get(), counters.reset.get()), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_all_are_served_a_bad_token_is_refused_and_none_is_not() {
    let (at, counters) = front(Servers::Behind(echo(0).await), Some(key("a")), false);
    for (what, token) in tokens(at) {
        assert!(!is_served(at, &hello(Some(token))).await, "a token {what}");
    }
    assert!(is_served(at, &hello(None)).await);
    assert!(is_served(at, b"").await);
    assert_eq!((counters.refused.get(), counters.relayed.get()), (4, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirector_gives_an_agent_what_the_front_behind_it_asks_for() {
    let (behind, behind_counters) = front(Servers::Behind(echo(0).await), Some(key("a")), true);
    let (redirector, _) = front(Servers::Others(vec![to(behind)]), Some(key("a")), false);
    let agent = RedSocks::default();
    let asked = async |at| {
        let connection = agent.connect(at, AppOptions::default()).await?;
        let mut stream = connection.stream;
        stream.write_all(REQUEST).await?;
        let mut got = [0; 3];
        stream.read_exact(&mut got).await?;
        Ok::<_, std::io::Error>(got)
    };
    assert_eq!(asked(redirector).await.unwrap(), *REQUEST);
    assert_eq!(behind_counters.refused.get(), 0);
    // Without a redirect, nothing that the same agent sends is answered.
    asked(behind).await.unwrap_err();
    assert_eq!(behind_counters.relayed.get(), 1);
    assert!(behind_counters.refused.get() > 0);
}
