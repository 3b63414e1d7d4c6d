//! Heads in several packets, of which user space may have to tell their clients that some have come.

use std::time::Duration;

use baton_abi::{SERVICE_PUNTS, TcbKey};
use baton_dataplane::{Punt, Punts, Resumed};

use super::{HEAD, prepared};
use crate::{
    cluster::HTTP,
    cs::http::{ANSWER, Connection, get},
    node::{Counted, Drop, Node, Tx},
    segment::Client,
};

const PUNTED: Counted<'_> = &[("cs_punted", 1), ("cs_target", 1)];

fn judged() -> (Node, Punts) {
    let node = prepared();
    node.change_flags(|flags| flags | SERVICE_PUNTS);
    let punts = node.plane().punts().unwrap();
    punts.give_sign(Duration::from_secs(3600)).unwrap();
    (node, punts)
}

fn read(punts: &Punts) -> Vec<Punt> {
    punts.wait(Duration::ZERO).unwrap().collect()
}

/// The ports had another connection before, whose entry is still there: nobody can ask its owner about this one, and no
/// question may come back as a packet to be judged, for that would be asked about again.
#[test]
fn the_first_of_a_connection_on_used_ports() {
    let (node, punts) = judged();
    let old = Connection::open(&node, get("/ds1/"));
    let new = old.client.again();
    let has_owner = || punts.has_owner(&TcbKey::of(new.address, HTTP)).unwrap();
    let part = new
        .get(node.cookie(&new))
        .payload("GET /ds2/ HTTP/1.1\r\nCoo");
    node.run(&part.frame()).expect(Drop, PUNTED);
    assert!(has_owner());
    let [punt] = &read(&punts)[..] else {
        panic!("one frame");
    };
    node.look();
    assert_eq!(punts.ask(punt).unwrap(), Resumed::Dropped);
    assert!(node.moved().is_empty());
    assert_eq!(read(&punts), []);
    assert!(!has_owner());

    // The rest of it makes it whole.
    let whole = new.get(part.ack.wrapping_sub(1)).payload(get("/ds2/"));
    node.run(&whole.frame()).expect(Tx, &[("cs_adopt", 1)]);
    assert!(has_owner());
}

/// It is its owner's to say that all before has come, and nothing else is asked again.
#[test]
fn a_question_is_never_shown_to_user_space() {
    let (node, punts) = judged();
    let mut connection = Connection::open(&node, get("/ds1/"));
    connection.ack += ANSWER;
    let part = connection.data("GET /ds2/ HTTP/1.1\r\nCoo");
    node.run(&part.frame()).expect(Drop, PUNTED);
    let [punt] = &read(&punts)[..] else {
        panic!("one frame");
    };
    assert!(matches!(punts.ask(punt).unwrap(), Resumed::Leaves(_)));
    // Meanwhile a whole request has come there, and what is behind it.
    let text = format!("GET /ds1/ HTTP/1.1\r\n{HEAD}\r\nGET /ds2/ HTTP/1.1\r\nCoo");
    let escaped = format!("GET /%64s1/ HTTP/1.1\r\n{HEAD}\r\n");
    for payload in [text.as_bytes(), escaped.as_bytes()] {
        let asked = Punt {
            frame: connection.data(payload).frame(),
            ..punt.clone()
        };
        node.look();
        assert_eq!(
            punts.ask(&asked).unwrap(),
            Resumed::Dropped,
            "{:?}",
            node.moved()
        );
        assert_eq!(read(&punts), []);
    }
}

/// A head is sent again from here as long as its server may not have it, and not once its response is there.
#[test]
fn what_has_come_to_its_server() {
    let (node, punts) = judged();
    let mut connection = Connection::open(&node, get("/ds1/"));
    let key = TcbKey::of(connection.client.address, HTTP);
    let is_settled = |seq| punts.is_settled(&key, seq).unwrap();
    let first = connection.entry(&node).request_seq;
    assert!(!is_settled(first));
    connection.ack += ANSWER;
    node.run(&connection.empty().frame());
    assert!(is_settled(first));
    let second = connection.data(get("/ds1/"));
    connection.send(&node, &second);
    assert!(is_settled(first) && !is_settled(second.seq));
    // Another one, behind it: what is acknowledged next may be of the second alone.
    let third = connection.data(get("/ds1/"));
    connection.send(&node, &third);
    connection.ack += ANSWER;
    node.run(&connection.empty().frame());
    assert!(!is_settled(second.seq) && !is_settled(third.seq));
    let nobody = TcbKey::of(Client::fresh().address, HTTP);
    assert!(punts.is_settled(&nobody, first).unwrap());
}
