//! EOP: the golden vectors of `vectors/eop.txt`, and properties of all messages.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../wire/vectors/reader.rs"]
mod reader;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use baton_wire::{Clock, ClusterKey};
use eop_protocol::wire::{
    Decoder, EopKey, Error, HEADER, Head, Hello, MAGIC, MAX_HEAD, Parsed, Piece, Redirect, Refused,
    Token, parse,
};
use proptest::prelude::*;
use reader::{Vector, hex, unhex};

#[test]
fn tokens_agree() {
    for vector in vectors("token", 2) {
        let key = EopKey::of(&vector.field("secret").parse::<ClusterKey>().unwrap());
        let (target, client) = (vector.place("target").unwrap(), vector.address("client"));
        let expiry = Clock::from_nanos(vector.field("expiry").parse().unwrap());
        let token = Token::new(&key, target, client, expiry);
        assert_eq!(
            hex(&token.bytes()),
            vector.field("bytes"),
            "{}",
            vector.name
        );
        assert_eq!(token.check(&key, target, client, expiry), Ok(()));
    }
}

#[test]
fn a_token_is_good_for_one_client_target_and_time() {
    let key = EopKey::of(&"01".repeat(32).parse().unwrap());
    let other_key = EopKey::of(&"02".repeat(32).parse().unwrap());
    let (target, client): (SocketAddr, IpAddr) =
        ("10.0.0.7:80".parse().unwrap(), "192.0.2.1".parse().unwrap());
    let expiry = Clock::from_nanos(1000);
    let token = Token::new(&key, target, client, expiry);
    let later = Clock::from_nanos(1001);
    assert_eq!(
        token.check(&key, target, client, later),
        Err(Refused::Expired)
    );
    let forged = Err(Refused::Forged);
    assert_eq!(token.check(&other_key, target, client, expiry), forged);
    assert_eq!(
        token.check(&key, "10.0.0.7:81".parse().unwrap(), client, expiry),
        forged
    );
    assert_eq!(
        token.check(&key, "10.0.0.8:80".parse().unwrap(), client, expiry),
        forged
    );
    assert_eq!(
        token.check(&key, target, "192.0.2.2".parse().unwrap(), expiry),
        forged
    );
    for bit in 0..24 * 8 {
        let mut bytes = token.bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let changed = Token::from_bytes(bytes);
        assert_eq!(
            changed.check(&key, target, client, expiry),
            forged,
            "bit {bit}"
        );
    }
    // A socket for both IP versions sees the client's address as a mapped one, which makes no difference.
    let mapped = "::ffff:192.0.2.1".parse().unwrap();
    assert_eq!(token.check(&key, target, mapped, expiry), Ok(()));
}

#[test]
fn heads_encode_to_these_bytes_and_back() {
    for vector in vectors("head", 15) {
        let (head, slen) = vector.head();
        let bytes = unhex(vector.field("bytes"));
        assert_eq!(hex(&head.bytes(slen)), hex(&bytes), "{}", vector.name);
        let whole = Parsed::Whole {
            head,
            length: bytes.len(),
            slen,
        };
        assert_eq!(parse(&bytes, u32::MAX), Ok(whole), "{}", vector.name);
    }
}

#[test]
fn a_header_may_be_cut_at_every_byte() {
    for vector in vectors("head", 15) {
        let bytes = unhex(vector.field("bytes"));
        for cut in 0..bytes.len() {
            match parse(&bytes[..cut], u32::MAX) {
                Ok(Parsed::Need(need)) => assert!(need > cut && need <= bytes.len()),
                other => panic!("{} cut at {cut}: {other:?}", vector.name),
            }
            let mut decoder = Decoder::new(u32::MAX);
            assert_eq!(decoder.next(&mut &bytes[..cut]), Ok(None));
            let expected = if cut == 0 { Ok(()) } else { Err(Error::CutOff) };
            assert_eq!(decoder.finish(), expected, "{} cut at {cut}", vector.name);
            let mut rest = &bytes[cut..];
            let (head, slen) = vector.head();
            assert_eq!(decoder.next(&mut rest), Ok(Some(Piece::Head(head, slen))));
        }
    }
}

#[test]
fn a_receiver_accepts_what_it_need_not_understand() {
    let heads: BTreeMap<_, _> = vectors("head", 15)
        .into_iter()
        .map(|vector| (vector.name.clone(), vector.head()))
        .collect();
    for vector in vectors("accept", 3) {
        let bytes = unhex(vector.field("bytes"));
        let (head, slen) = heads[vector.field("as")];
        let whole = Parsed::Whole {
            head,
            length: bytes.len(),
            slen,
        };
        assert_eq!(parse(&bytes, u32::MAX), Ok(whole), "{}", vector.name);
    }
}

#[test]
fn what_is_wrong_is_named_and_stays_wrong() {
    for vector in vectors("reject", 20) {
        let bytes = unhex(vector.field("bytes"));
        let limit = vector.field("limit").parse().unwrap();
        let error = parse(&bytes, limit).unwrap_err();
        let reason = match error {
            Error::Opcode { .. } => "opcode",
            Error::TooLong { .. } => "too-long",
            Error::Target => "target",
            Error::Item { .. } => "item",
            Error::Magic => "magic",
            other => panic!("{}: {other}", vector.name),
        };
        assert_eq!(reason, vector.field("reason"), "{}", vector.name);
        let mut decoder = Decoder::new(limit);
        assert_eq!(decoder.next(&mut &bytes[..]), Err(error));
        let good = Head::normal(0);
        assert_eq!(decoder.next(&mut &good[..]), Err(error), "{}", vector.name);
        assert_eq!(decoder.finish(), Err(error));
    }
}

#[test]
fn hello_begins_as_nothing_else_does() {
    assert_eq!(Head::Hello(Hello::default()).bytes(0)[..HEADER], MAGIC);
    assert!(MAGIC.iter().any(|byte| !byte.is_ascii()));
    assert!(std::str::from_utf8(&MAGIC).is_err());
}

fn any_place() -> impl Strategy<Value = SocketAddr> {
    (any::<IpAddr>(), 1..=u16::MAX)
        .prop_map(|(ip, port)| SocketAddr::new(ip.to_canonical(), port))
        .prop_filter("no address", |place| !place.ip().is_unspecified())
}

fn any_token() -> impl Strategy<Value = Option<Token>> {
    prop::option::of(prop::array::uniform24(any::<u8>()).prop_map(Token::from_bytes))
}

/// Any head, with the message behind it.
fn any_message() -> impl Strategy<Value = (Head, Vec<u8>)> {
    let message = || prop::collection::vec(any::<u8>(), 0..300);
    let redirect = (
        any_place(),
        any::<bool>(),
        any_token(),
        prop::option::of(any::<u64>()),
        message(),
    )
        .prop_map(|(target, answers, token, taken, message)| {
            let answers = answers || !message.is_empty();
            let redirect = Redirect {
                target,
                answers,
                token,
                taken,
            };
            (Head::Redirect(redirect), message)
        });
    let hello = (any_token(), prop::option::of(any_place())).prop_map(|(token, fell_back_from)| {
        let hello = Hello {
            token,
            fell_back_from,
        };
        (Head::Hello(hello), Vec::new())
    });
    prop_oneof![
        message().prop_map(|message| (Head::Normal, message)),
        redirect,
        hello,
        Just((Head::Welcome, Vec::new())),
    ]
}

proptest! {
    #[test]
    fn messages_survive_any_cutting(
        messages in prop::collection::vec(any_message(), 0..12),
        cuts in prop::collection::vec(1usize..64, 1..50),
    ) {
        let mut stream = Vec::new();
        for (head, message) in &messages {
            let bytes = head.bytes(message.len() as u32);
            prop_assert!(bytes.len() <= MAX_HEAD);
            stream.extend(bytes);
            stream.extend(message);
        }
        let mut decoder = Decoder::new(300);
        let mut found: Vec<(Head, Vec<u8>)> = Vec::new();
        let mut ended = 0;
        let mut rest = &stream[..];
        for cut in cuts.iter().cycle() {
            let (mut part, behind) = rest.split_at(rest.len().min(*cut));
            rest = behind;
            while let Some(piece) = decoder.next(&mut part).unwrap() {
                match piece {
                    Piece::Head(head, _) => found.push((head, Vec::new())),
                    Piece::Data(data) => found.last_mut().unwrap().1.extend(data),
                    Piece::End => ended += 1,
                }
            }
            prop_assert!(part.is_empty());
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(ended, messages.len());
        prop_assert_eq!(found, messages);
        prop_assert_eq!(decoder.finish(), Ok(()));
    }

    #[test]
    fn no_bytes_panic_and_what_is_accepted_means_the_same_again(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        op in prop::sample::select(vec![1u16, 2, 0x102, 0x103, 0x104]),
        limit in any::<u32>(),
    ) {
        let bytes = [&op.to_be_bytes()[..], &bytes].concat();
        if let Ok(Parsed::Whole { head, slen, .. }) = parse(&bytes, limit) {
            prop_assert!(slen <= limit);
            let again = head.bytes(slen);
            let whole = Parsed::Whole { head, length: again.len(), slen };
            prop_assert_eq!(parse(&again, limit), Ok(whole));
        }
    }
}

fn vectors(kind: &str, at_least: usize) -> Vec<Vector> {
    reader::vectors(include_str!("../vectors/eop.txt"), kind, at_least)
}

impl Vector {
    fn address(&self, name: &str) -> IpAddr {
        self.field(name).parse().unwrap()
    }

    fn place(&self, name: &str) -> Option<SocketAddr> {
        let (address, port) = self.optional(name)?.split_once(' ').unwrap();
        Some(SocketAddr::new(
            address.parse().unwrap(),
            port.parse().unwrap(),
        ))
    }

    fn head(&self) -> (Head, u32) {
        let token = self
            .optional("token")
            .map(|token| Token::from_bytes(unhex(token).try_into().unwrap()));
        let head = match self.field("op") {
            "normal" => Head::Normal,
            "redirect" => Head::Redirect(Redirect {
                target: self.place("target").unwrap(),
                answers: self.field("answers") == "yes",
                token,
                taken: (self.optional("taken")).map(|taken| taken.parse().unwrap()),
            }),
            "hello" => Head::Hello(Hello {
                token,
                fell_back_from: self.place("back"),
            }),
            "welcome" => Head::Welcome,
            other => panic!("op {other}"),
        };
        (head, self.field("slen").parse().unwrap())
    }
}
