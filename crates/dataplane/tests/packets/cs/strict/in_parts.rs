//! Heads in several packets, of which user space may have to tell their clients that some have come.

use std::time::Duration;

use baton_abi::{SERVICE_PUNTS, TCB_FIN, TCB_PINNED, TCB_RST, TcbKey};
use baton_dataplane::{Findings, Punt, Punts, RequestLength, Resumed};

use super::{HEAD, prepared};
use crate::{
    cluster::{HTTP, first_pool_of_one},
    cs::http::{ANSWER, Connection, forwarded, get, to},
    node::{Counted, Drop, Node, Tx},
    segment::{Client, Segment},
};

const PUNTED: Counted<'_> = &[("cs_punted", 1), ("cs_target", 1)];
const PUNTED_BEHIND: Counted<'_> = &[("cs_punted_behind", 1)];

pub fn judged() -> (Node, Punts) {
    let node = prepared();
    node.change_flags(|flags| flags | SERVICE_PUNTS);
    let punts = node.plane().punts().unwrap();
    punts.give_sign(Duration::from_secs(3600)).unwrap();
    (node, punts)
}

pub fn read(punts: &Punts) -> Vec<Punt> {
    punts.wait(Duration::ZERO).unwrap().collect()
}

/// The first packets of a new connection of this client: a head in two parts.
pub fn two_parts(node: &Node, client: &Client, head: &str) -> [Segment; 2] {
    let first = client.get(node.cookie(client)).payload(&head[..10]);
    let seq = first.seq.wrapping_add(10);
    let rest = first.clone().seq(seq).payload(&head[10..]);
    [first, rest]
}

/// Both parts of a head leave for the second data server: the request is for that, and has a body of so many bytes.
#[track_caller]
pub fn let_go(punts: &Punts, parts: &[Punt], head: &str, body: u64) {
    let length = Some(RequestLength::Bytes {
        head: head.len() as u32,
        body,
    });
    let findings = Findings {
        length,
        ..Findings::default()
    };
    let lead = to(first_pool_of_one() + 1);
    let first = punts.resume_by(&parts[0], lead, None, findings).unwrap();
    assert!(matches!(first, Resumed::Leaves(_)), "{first:?}");
    for part in &parts[1..] {
        let rest = punts.follow(part).unwrap();
        assert!(matches!(rest, Resumed::Leaves(_)), "{rest:?}");
    }
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

/// The ports had another connection before, whose entry is still there. What follows the first part of a new connection
/// waits behind that, whatever the entry says, which stays as it is. What the earlier client sends goes its way meanwhile.
#[test]
fn what_follows_the_first_of_a_connection_on_used_ports() {
    for state in [0, TCB_PINNED, TCB_FIN] {
        let (node, punts) = judged();
        let old = Connection::answered(&node);
        let mut before = old.entry(&node);
        before.state |= state as u8;
        let key = node.tcb_key(&old.client);
        node.plane().set_tcb(&key, &before).unwrap();

        let head = get("/ds2/");
        let new = old.client.again();
        let [first, rest] = two_parts(&node, &new, &head);
        let end = rest.seq.wrapping_add(rest.payload.len() as u32);
        let fin = rest.clone().seq(end).payload("").flags("FA");
        node.run(&first.frame()).expect(Drop, PUNTED);
        node.run(&rest.frame()).expect(Drop, PUNTED_BEHIND);
        node.run(&fin.frame()).expect(Drop, PUNTED_BEHIND);
        old.is_unchanged(&node, &before);
        let shown = read(&punts);
        let behind: Vec<_> = shown.iter().map(|punt| punt.is_behind).collect();
        assert_eq!(behind, [false, true, true]);
        let far = old.data("more").seq(old.seq.wrapping_add(1 << 20));
        let seen = node.run(&far.frame());
        assert_eq!((seen.verdict, seen.counted.get("cs_jump")), (Tx, Some(&1)));
        // Nor does the entry have it when it is let go without what it is behind.
        assert_eq!(punts.follow(&shown[1]).unwrap(), Resumed::Dropped);
        assert_eq!(read(&punts), []);

        let_go(&punts, &shown, &head, 0);
        let entry = node.tcb(&new).unwrap();
        assert_eq!((entry.owner, entry.request_seq), (1, first.seq));
        assert_eq!((entry.last_seq, entry.next_request), (end, end));
    }
}

/// The same where the numbers of the new connection are near those of the entry, as happens by chance where ports are used
/// again within milliseconds.
#[test]
fn near_the_end_of_an_earlier_connection() {
    let head = get("/ds2/");
    for state in [TCB_FIN, TCB_RST] {
        let (node, punts) = judged();
        let old = Connection::answered(&node);
        let isn = old.seq.wrapping_add(20_000);
        let new = Client { isn, ..old.client };
        let [first, rest] = two_parts(&node, &new, &head);
        let mut ended = old.entry(&node);
        ended.state |= state as u8;
        ended.last_ack = first.ack.wrapping_add(10_000);
        // All of its responses are counted: nothing of the entry changes before it goes.
        ended.counted = ended.last_ack;
        let key = node.tcb_key(&new);
        node.plane().set_tcb(&key, &ended).unwrap();

        let shaken = first.clone().payload("").flags("A");
        node.run(&shaken.frame())
            .expect(Drop, &[("cs_handshake_ack", 1)]);
        node.run(&first.frame()).expect(Drop, PUNTED);
        node.run(&rest.frame()).expect(Drop, PUNTED_BEHIND);
        old.is_unchanged(&node, &ended);
        let_go(&punts, &read(&punts), &head, 0);
        assert_eq!(node.tcb(&new).unwrap().request_seq, first.seq);
    }
}

/// The entry is the connection's own, whose first head was shown: what is far behind that is its owner's.
#[test]
fn what_is_far_behind_a_first_head() {
    let (node, punts) = judged();
    let head = format!("PUT /ds2/ HTTP/1.1\r\n{HEAD}Content-Length: 10000000\r\n\r\n");
    let client = Client::of(HTTP);
    let [first, rest] = two_parts(&node, &client, &head);
    node.run(&first.frame()).expect(Drop, PUNTED);
    node.run(&rest.frame()).expect(Drop, PUNTED_BEHIND);
    let_go(&punts, &read(&punts), &head, 10_000_000);
    let far = rest.seq.wrapping_add(1 << 20);
    let far = rest.seq(far).payload("of its body");
    node.run(&far.frame()).expect(Tx, &forwarded(&far));
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
