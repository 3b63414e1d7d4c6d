//! How long a cookie is valid, under which keys, and for which clients.

use baton_wire::LccpKey;

use crate::prelude::*;

const ADOPTED: Counted<'_> = &[("cs_adopt", 1)];
const CLAIMED: Counted<'_> = &[("cs_claim", 1)];

#[test]
fn good_in_its_own_period_and_the_next() {
    let node = Node::cs();
    for (periods, good) in [(0, true), (1, true), (2, false), (3, false), (256, false)] {
        let client = Client::fresh();
        let cookie = node.cookie(&client);
        node.wait(COOKIE_PERIOD * periods);
        let seen = node.run(&client.get(cookie).frame());
        let (verdict, counted) = if good { (Tx, ADOPTED) } else { (Tx, CLAIMED) };
        seen.check(verdict, counted)
            .unwrap_or_else(|error| panic!("{periods} periods later: {error}"));
    }
}

/// A cookie from the future is not valid: NTP may set the clock back after it was made.
#[test]
fn not_good_before_it_was_made() {
    let node = Node::cs();
    let client = Client::fresh();
    let before = node.now();
    node.wait(COOKIE_PERIOD);
    let cookie = node.cookie(&client);
    node.set_clock(before);
    node.run(&client.get(cookie).frame()).expect(Tx, CLAIMED);
}

#[test]
fn good_under_the_previous_key() {
    let node = Node::cs();
    for (name, periods, good) in [
        ("rotated", 0, true),
        ("rotated, next period", 1, true),
        ("late", 2, false),
    ] {
        let client = Client::fresh();
        let cookie = node.cookie(&client);
        node.change(|settings| {
            let [current, _] = settings.cookie_key;
            settings.cookie_key = [[periods.into(), 99], current];
        });
        node.wait(COOKIE_PERIOD * periods);
        let (verdict, counted) = if good { (Tx, ADOPTED) } else { (Tx, CLAIMED) };
        node.run(&client.get(cookie).frame())
            .expect_of(name, verdict, counted);
    }
}

#[test]
fn not_good_under_other_keys() {
    let node = Node::cs();
    let other = other_key().cookie().words();
    let another = LccpKey::from_words([1, 2]).words();
    for keys in [[other, [0, 0]], [other, another], [[0, 0], [0, 0]]] {
        let client = Client::fresh();
        let cookie = node.cookie(&client);
        let before = node.plane().settings().unwrap().cookie_key;
        node.change(|settings| settings.cookie_key = keys);
        node.run(&client.get(cookie).frame()).expect(Tx, CLAIMED);
        node.change(|settings| settings.cookie_key = before);
    }
}

/// A missing previous key is not taken for a key of zeros.
#[test]
fn no_previous_key_is_no_key() {
    let node = Node::cs();
    let client = Client::fresh();
    let key = node.plane().settings().unwrap().cookie_key;
    node.change(|settings| settings.cookie_key = [[0, 0], [0, 0]]);
    let cookie = node.cookie(&client);
    node.change(|settings| settings.cookie_key = key);
    node.run(&client.get(cookie).frame()).expect(Tx, CLAIMED);
}

#[test]
fn good_for_no_other_bit_of_it() {
    let node = Node::cs();
    for bit in 0..32 {
        let client = Client::fresh();
        let cookie = node.cookie(&client);
        let seen = node.run(&client.get(cookie ^ 1 << bit).frame());
        seen.check(Tx, CLAIMED)
            .unwrap_or_else(|error| panic!("bit {bit}: {error}"));
    }
}

#[test]
fn good_for_nobody_else() {
    let node = Node::cs();
    let others: [(&str, fn(&Client, Segment) -> Segment); 5] = [
        ("another port", |_, mut get| {
            get.from.set_port(get.from.port() ^ 0x8000);
            get
        }),
        ("another address", |_, mut get| {
            get.from.set_ip("203.0.113.9".parse().unwrap());
            get
        }),
        ("another service", |_, get| get.to(crate::cluster::SMTP)),
        ("another ISN", |client, get| get.seq(client.isn)),
        ("the second segment", |client, get| {
            get.seq(client.isn.wrapping_add(100))
        }),
    ];
    for (name, change) in others {
        let client = Client::fresh();
        let cookie = node.cookie(&client);
        let get = change(&client, client.get(cookie));
        node.run(&get.frame()).expect_of(name, Tx, CLAIMED);
    } // A segment without ACK belongs to no connection either, so nobody is asked for it.
    let client = Client::fresh();
    let get = client.get(node.cookie(&client)).flags("P");
    node.run(&get.frame()).expect(Drop, &[("cs_stray", 1)]);
}
