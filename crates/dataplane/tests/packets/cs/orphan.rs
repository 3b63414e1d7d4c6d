//! Connections whose data server is dead, and requests that are kept for that day.

use baton_abi::{
    Change, DATA_SERVER_DEAD, DATA_SERVER_DEAF, DATA_SERVER_ROUTED, LCCP_ADOPT, LCCP_FLAG_RESUME,
    ROUTE_RESUME, SERVICE_RESUME_REST, SERVICE_STRICT, TCB_ADOPTING, TCB_PINNED, TCB_RESUMING, Tcb,
};
use baton_dataplane::{Orphans, Tick, tick_ago};

use super::{
    http::{ANSWER, Connection, forwarded, forwarded_and, get, routes_by_name, routes_with},
    returned::none,
};
use crate::{
    cluster::{HTTP_SERVICE, data_server, ds, ds_mac},
    lccp::{INNER, LCCP, adopt, forward, sent},
    node::{Drop, Node, Pass, Tx},
    seen::Seen,
    segment::{Client, Segment},
};

/// In a message's header; its flags are behind it.
const COMMAND: usize = LCCP + 2;

/// A connection server whose HTTP service can be resumed; its first data server has the next connection.
fn node() -> (Node, Orphans) {
    let (node, orphans) = resuming(SERVICE_RESUME_REST);
    routes_with(&node, ROUTE_RESUME);
    (node, orphans)
}

/// Of requests that no route takes, if these flags of the service say so.
fn resuming(flags: u32) -> (Node, Orphans) {
    let node = Node::fresh_cs();
    node.change_flags(|found| found | flags);
    let orphans = node.plane().orphans().unwrap();
    (node, orphans)
}

/// The others of the pool take what comes.
fn kill_first(node: &Node) {
    mark_first(node, DATA_SERVER_DEAD);
}

fn mark_first(node: &Node, flag: u32) {
    let mut way = data_server(0);
    way.flags |= flag as u8;
    node.plane().set_data_server(0, &way).unwrap();
    for pool in 0..=HTTP_SERVICE + 3 {
        let mut found = node.plane().pool(pool).unwrap();
        found.members = [0b110, 0, 0, 0];
        node.plane().set_pool(pool, &found).unwrap();
        node.set_choices(pool, &[1, 1, 1]);
    }
}

fn kept(node: &Node, orphans: &Orphans, client: &Client) -> Option<(u32, u32, Vec<u8>)> {
    let kept = orphans.kept(&node.tcb_key(client)).unwrap()?;
    let text = kept.text[..kept.bytes.into()].to_vec();
    Some((kept.request_seq, kept.response_start, text))
}

fn change(node: &Node, client: &Client, tcb: &Tcb, next: u16, set: u32, clear: u32) -> Change {
    Change {
        key: node.tcb_key(client),
        request_seq: tcb.request_seq,
        owner: tcb.owner,
        next,
        set: set as u8,
        clear: clear as u8,
        ..Change::default()
    }
}

#[test]
fn whole_requests_are_kept_as_they_came() {
    let (node, orphans) = node();
    let mut connection = Connection::open(&node, get("/ds1/a"));
    let entry = connection.entry(&node);
    let text = get("/ds1/a").into_bytes();
    let first = (entry.request_seq, entry.last_ack, text);
    assert_eq!(kept(&node, &orphans, &connection.client), Some(first));

    connection.ack += ANSWER;
    for target in ["/ds1/b", "/ds2/c"] {
        let request = connection.data(get(target));
        let seen = connection.send(&node, &request);
        assert_eq!(seen.counted.get("cs_request_kept"), Some(&1), "{seen:?}");
        let next = (request.seq, request.ack, get(target).into_bytes());
        assert_eq!(kept(&node, &orphans, &connection.client), Some(next));
        connection.ack += ANSWER;
    }
    // Asked twice it would be done twice.
    let post = connection.data("POST /ds2/ HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
    let seen = connection.send(&node, &post);
    assert_eq!(seen.counted.get("cs_request_kept"), None, "{seen:?}");
}

/// One before it may be unanswered, so nobody knows where its response begins; until the connection moves, which it does
/// only when all is answered.
#[test]
fn requests_behind_an_unanswered_one_are_not_kept() {
    let (node, orphans) = resuming(SERVICE_RESUME_REST | SERVICE_STRICT);
    routes_with(&node, ROUTE_RESUME);
    let mut connection = Connection::open(&node, get("/ds1/a"));
    connection.ack += ANSWER;
    connection.send(&node, &connection.data(get("/ds1/b")));
    let kept_last = |connection: &Connection| {
        let kept = kept(&node, &orphans, &connection.client);
        kept.is_some_and(|(seq, ..)| seq == connection.entry(&node).request_seq)
    };
    assert!(kept_last(&connection));
    for (target, answered) in [("/ds1/c", 0), ("/ds1/d", ANSWER), ("/ds1/e", ANSWER)] {
        connection.ack += answered;
        connection.send(&node, &connection.data(get(target)));
        assert!(!kept_last(&connection), "{target}");
    }
    connection.ack += ANSWER;
    connection.send(&node, &connection.data(get("/ds2/f")));
    assert!(kept_last(&connection));
}

#[test]
fn services_that_do_not_want_it_keep_nothing() {
    let node = Node::cs();
    let connection = Connection::open(&node, get("/"));
    let orphans = node.plane().orphans().unwrap();
    assert_eq!(kept(&node, &orphans, &connection.client), None);
}

/// Whatever the service says of those that no route takes.
#[test]
fn a_route_has_the_last_word_of_its_requests() {
    for (flags, by_route, rest) in [
        (0, 0, false),
        (0, ROUTE_RESUME, false),
        (SERVICE_RESUME_REST, 0, true),
        (SERVICE_RESUME_REST, ROUTE_RESUME, true),
    ] {
        let (node, orphans) = resuming(flags);
        routes_with(&node, by_route);
        let is_kept = |connection: &Connection| {
            let kept = kept(&node, &orphans, &connection.client);
            kept.is_some_and(|(seq, ..)| seq == connection.entry(&node).request_seq)
        };
        let mut connection = Connection::open(&node, get("/ds1/a"));
        assert_eq!(is_kept(&connection), by_route != 0, "{flags} {by_route}");
        // Of one connection each request counts, also one that goes to another data server.
        for (target, keeps) in [("/", rest), ("/ds2/", by_route != 0), ("/", rest)] {
            connection.ack += ANSWER;
            let request = connection.data(get(target));
            connection.send(&node, &request);
            assert_eq!(is_kept(&connection), keeps, "{flags} {by_route} {target}");
        }
    }
}

/// It refuses messages: what it has goes on, what it cannot have got goes to another, and a request that
/// would leave it stays.
#[test]
fn of_a_data_server_that_does_not_hear_only_what_it_has_goes_on() {
    let (node, _) = node();
    let mut connection = Connection::open(&node, get("/ds1/"));
    mark_first(&node, DATA_SERVER_DEAF);
    let mut again = connection;
    again.seq -= get("/ds1/").len() as u32;
    let again = again.data(get("/ds1/"));

    // The response comes.
    let before = connection.entry(&node);
    connection.ack += ANSWER;
    let ack = connection.empty();
    let seen = node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(0));
    let next = connection.data(get("/ds2/"));
    let seen = connection.send(&node, &next);
    assert_eq!(seen.counted.get("cs_unmoved"), Some(&1), "{seen:?}");
    assert_eq!(seen.counted.get("cs_handover"), None, "{seen:?}");
    assert_eq!(seen.packet().ethernet.destination, ds_mac(0));
    assert_eq!(connection.entry(&node).owner, 0);

    // It does not come, and the request does.
    let key = node.tcb_key(&connection.client);
    node.plane().set_tcb(&key, &before).unwrap();
    let seen = node
        .run(&again.frame())
        .expect(Tx, &[("cs_deaf", 1), ("cs_orphan_adopt", 1)]);
    let message = sent(&node, &seen);
    assert_eq!((message.to, message.packet), (ds(1), again.packet()));
    assert_eq!(message.message, adopt(&connection.client));
    assert_eq!(connection.entry(&node).owner, 1);

    // Nor when it is dead as well.
    node.plane().set_tcb(&key, &before).unwrap();
    mark_first(&node, DATA_SERVER_DEAF | DATA_SERVER_DEAD);
    let seen = node.run(&again.frame());
    seen.expect(Tx, &[("cs_orphan_adopt", 1)]);
}

/// Behind a router clients' packets are in messages too, and it refuses them. It may still be sending, and nobody can
/// have it stop: what it has begun waits for it, and only what it cannot have got goes to another.
#[test]
fn behind_a_router_what_it_has_waits_for_it() {
    let (node, _) = node();
    let mut connection = Connection::open(&node, get("/ds1/"));
    mark_first(&node, DATA_SERVER_DEAF | DATA_SERVER_ROUTED);
    let unanswered = connection.entry(&node);
    let mut again = connection;
    again.seq -= get("/ds1/").len() as u32;
    let again = again.data(get("/ds1/"));
    let is_forwarded = |connection: &Connection, seen: &Seen, packet: &Segment| {
        let message = sent(&node, seen);
        assert_eq!((message.to, message.packet), (ds(0), packet.packet()));
        assert_eq!(message.message, forward(&connection.client));
        assert_eq!(connection.entry(&node).owner, 0);
    };

    // Of the response, of a next request, whoever is to answer it, and of that one again.
    connection.ack += ANSWER;
    let ack = connection.empty();
    let seen = node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    is_forwarded(&connection, &seen, &ack);
    let next = connection.data(get("/ds2/"));
    let seen = connection.send(&node, &next);
    assert_eq!(seen.counted.get("cs_unmoved"), Some(&1), "{seen:?}");
    is_forwarded(&connection, &seen, &next);
    let seen = node.run(&next.frame()).expect(Tx, &forwarded(&next));
    is_forwarded(&connection, &seen, &next);

    // Nobody has answered its first request.
    let key = node.tcb_key(&connection.client);
    node.plane().set_tcb(&key, &unanswered).unwrap();
    let seen = node.run(&again.frame());
    let seen = seen.expect(Tx, &[("cs_deaf", 1), ("cs_orphan_adopt", 1)]);
    let message = sent(&node, &seen);
    assert_eq!((message.to, message.packet), (ds(1), again.packet()));
    assert_eq!(message.message, adopt(&connection.client));
    assert_eq!(connection.entry(&node).owner, 1);
}

#[test]
fn a_request_that_nobody_has_answered_goes_to_another() {
    let (node, _) = node();
    let mut connection = Connection::open(&node, get("/ds1/"));
    kill_first(&node);
    connection.seq -= get("/ds1/").len() as u32;
    let again = connection.data(get("/ds1/"));
    let seen = connection.send(&node, &again);
    let seen = seen.expect(Tx, &[("cs_orphan_adopt", 1)]);
    let message = sent(&node, &seen);
    assert_eq!((message.to, message.packet), (ds(1), again.packet()));
    assert_eq!(message.message, adopt(&connection.client));
    assert_eq!(connection.entry(&node).owner, 1);
}

/// Its last packet came long ago.
fn is_quiet(node: &Node, connection: &Connection) {
    let Tick(long_ago) = tick_ago(std::time::Duration::from_secs(10));
    let entry = Tcb {
        seen: long_ago,
        ..connection.entry(node)
    };
    let key = node.tcb_key(&connection.client);
    node.plane().set_tcb(&key, &entry).unwrap();
}

/// The client may be in the middle of a response: as long as the daemon has not seen to it, or its request is kept, or
/// the response has not begun.
#[test]
fn the_next_request_waits_until_the_response_before_is_known_to_be_whole() {
    let (node, orphans) = node();
    let connection = Connection::answered(&node);
    kill_first(&node);
    let request = connection.data(get("/ds1/"));
    let before = connection.entry(&node);
    let waits = |name: &str| {
        let counted = [("cs_orphan_waits", 1), ("cs_request", 1)];
        let seen = node.run(&request.frame());
        seen.check(Drop, &counted)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(connection.entry(&node).request_seq, before.request_seq);
    };
    is_quiet(&node, &connection);
    waits("kept");
    let key = node.tcb_key(&connection.client);
    orphans.note_whole(&key).unwrap();
    node.plane().set_tcb(&key, &before).unwrap();
    waits("heard of just now");
    is_quiet(&node, &connection);
    let resumed = Tcb {
        state: TCB_RESUMING as u8,
        ..connection.entry(&node)
    };
    node.plane().set_tcb(&key, &resumed).unwrap();
    waits("to be resumed");
    node.plane().set_tcb(&key, &before).unwrap();
    is_quiet(&node, &connection);
    node.run(&request.frame()).expect(
        Tx,
        &[
            ("cs_orphan_adopt", 1),
            ("cs_request", 1),
            ("cs_request_kept", 1),
        ],
    );
}

/// Whether its last owner, which is dead, has handed it over the next one knows; and if not, whether the client waits for
/// the rest of another response is known of requests that are kept, and by the daemon.
#[test]
fn what_the_dead_was_to_hand_over_is_asked_for() {
    for is_kept in [true, false] {
        let (node, orphans) = node();
        if !is_kept {
            routes_with(&node, 0);
        }
        let mut connection = Connection::answered(&node);
        let request = connection.data(get("/ds2/"));
        let seen = connection.send(&node, &request);
        assert_eq!(seen.counted.get("cs_handover"), Some(&1), "{seen:?}");
        kill_first(&node);
        let key = node.tcb_key(&connection.client);
        let found = orphans
            .muster(0, tick_ago(std::time::Duration::ZERO))
            .unwrap();
        assert!(found.iter().any(|(at, _)| *at == key));

        let seen = node.run(&request.frame());
        let seen = seen.expect(Tx, &[("cs_orphan_asks", 1)]);
        let message = sent(&node, &seen);
        assert_eq!((message.to, message.packet), (ds(1), request.packet()));
        assert_eq!(message.message, forward(&connection.client));

        let none = none(&node, 1, &request, 0);
        if !is_kept {
            let seen = node.run(&none);
            seen.expect(Pass, &[("cs_none", 1), ("cs_orphan_reset", 1)]);
            assert!(node.tcb(&connection.client).is_none());
            continue;
        }
        let counted = [("cs_none", 1), ("cs_orphan_waits", 1)];
        node.run(&none).expect(Drop, &counted);
        // The daemon has found that it began at its response's end.
        let entry = connection.entry(&node);
        assert_eq!((entry.owner, entry.previous), (1, 0));
        let whole = change(&node, &connection.client, &entry, 1, 0, 0);
        orphans.change(whole).unwrap().expect("is as it was");
        let seen = node.run(&request.frame());
        let message = sent(&node, &seen.expect(Tx, &[("cs_adopt_again", 1)]));
        assert_eq!(message.to, ds(1));
    }
}

/// Nor will its client send it again, as long as it sends something before that, which the dead has not got either.
#[test]
fn what_was_before_it_and_is_lost() {
    for (back, ends) in [(4, true), (0, true), (u32::MAX, false)] {
        let (node, _orphans) = node();
        node.change_flags(|flags| flags | SERVICE_STRICT);
        routes_with(&node, 0);
        let mut connection = Connection::answered(&node);
        let request = connection.data(get("/ds2/"));
        connection.send(&node, &request);
        kill_first(&node);
        let mut other = request.clone();
        other.seq = request.seq.wrapping_sub(back);
        let seen = node.run(&none(&node, 1, &other, 0));
        if ends {
            seen.expect(Pass, &[("cs_none", 1), ("cs_orphan_reset", 1)]);
        } else {
            seen.expect(Drop, &[("lccp_mismatch", 1)]);
        }
        assert_eq!(node.tcb(&connection.client).is_none(), ends);
    }
}

#[test]
fn the_next_request_does_not_go_through_the_dead() {
    let (node, orphans) = node();
    let mut connection = Connection::answered(&node);
    kill_first(&node);
    is_quiet(&node, &connection);
    orphans
        .note_whole(&node.tcb_key(&connection.client))
        .unwrap();
    let request = connection.data(get("/ds1/"));
    let seen = connection.send(&node, &request);
    let counted = [
        ("cs_orphan_adopt", 1),
        ("cs_request", 1),
        ("cs_request_kept", 1),
    ];
    let message = sent(&node, &seen.expect(Tx, &counted));
    assert_eq!(message.to, ds(1));
    assert_eq!(message.message, adopt(&connection.client));
    let entry = connection.entry(&node);
    assert_eq!(
        (entry.owner, u32::from(entry.previous)),
        (1, baton_abi::NO_DATA_SERVER)
    );
    // Its retransmission neither.
    let seen = node.run(&request.frame());
    assert_eq!(
        sent(&node, &seen.expect(Tx, &[("cs_adopt_again", 1)])).to,
        ds(1)
    );
}

#[test]
fn in_the_middle_of_a_response_a_client_waits_or_is_told() {
    let (node, orphans) = node();
    let connection = Connection::answered(&node);
    let other = Node::fresh_cs();
    routes_by_name(&other);
    let forgotten = Connection::answered(&other);
    kill_first(&node);
    kill_first(&other);
    let ack = connection.empty();
    node.run(&ack.frame())
        .expect(Drop, &[("cs_orphan_waits", 1)]);
    assert!(kept(&node, &orphans, &connection.client).is_some());

    // A keep-alive probe first: it is one byte behind.
    let mut probe = forgotten.empty();
    probe.seq -= 1;
    other
        .run(&probe.frame())
        .expect(Drop, &[("cs_orphan_waits", 1)]);
    let ack = forgotten.empty();
    let seen = other.run(&ack.frame());
    let seen = seen.expect(Tx, &[("cs_orphan_reset", 1)]);
    let tcp = seen.packet().tcp().unwrap().header;
    assert_eq!(tcp.sequence_number, ack.ack);
    assert!(tcp.rst && other.tcb(&forgotten.client).is_none());
}

/// A connection in the middle of a response whose data server is dead, and what gives it to the second one.
fn orphan(node: &Node) -> (Connection, Change) {
    let connection = Connection::answered(node);
    kill_first(node);
    let before = connection.entry(node);
    let client = &connection.client;
    let taken = change(node, client, &before, 2, TCB_RESUMING, TCB_ADOPTING);
    (connection, taken)
}

/// Nobody knows whether a request begins there, and the agent cannot say it before it has the connection.
#[test]
fn nothing_unsure_goes_to_who_has_the_rest() {
    let (node, orphans) = node();
    node.change_flags(|flags| flags | SERVICE_STRICT);
    let (connection, taken) = orphan(&node);
    orphans.change(taken).unwrap().expect("is as it was");
    let mut entry = connection.entry(&node);
    entry.state |= TCB_PINNED as u8;
    entry.head = 0;
    let key = node.tcb_key(&connection.client);
    node.plane().set_tcb(&key, &entry).unwrap();
    let more = connection.data(get("/ds2/"));
    node.run(&more.frame())
        .expect(Drop, &[("cs_orphan_waits", 1)]);
}

/// As an ADOPT that begins in the middle of a response, to the third data server.
#[track_caller]
pub fn goes_to_the_rest(node: &Node, ack: &Segment) {
    let seen = node.run(&ack.frame()).expect(Tx, &[("cs_resume", 1)]);
    assert_eq!(seen.packet().ethernet.destination, ds_mac(2));
    let said = [LCCP_ADOPT, LCCP_FLAG_RESUME].map(|word| word as u8);
    assert_eq!(seen.frame[COMMAND..COMMAND + 2], said);
    assert_eq!(seen.frame[INNER..], ack.packet());
}

/// The agent's socket is made where the client says that it is, by nothing else of it.
#[test]
fn acknowledgements_go_to_who_has_the_rest() {
    let (node, orphans) = node();
    let (mut connection, taken) = orphan(&node);
    let entry = orphans.change(taken).unwrap().expect("is as it was");
    assert_eq!(entry.owner, 2);
    // Once only: it is another one's now.
    assert_eq!(orphans.change(taken).unwrap(), None);

    let ack = connection.empty();
    goes_to_the_rest(&node, &ack);

    let mut again = connection.data(get("/ds1/"));
    again.seq -= again.payload.len() as u32;
    let fin = connection.empty().flags("FA");
    let mut behind = connection.empty();
    behind.seq -= 1;
    for other in [again, behind, fin] {
        let mut counted = forwarded(&other);
        if other.flags.contains('F') {
            counted.push(("cs_fin", 1));
        }
        let seen = node.run(&other.frame()).expect(Tx, &counted);
        assert_eq!(seen.packet().ethernet.destination, ds_mac(2));
    }

    let entry = connection.entry(&node);
    let begun = change(&node, &connection.client, &entry, 2, 0, TCB_RESUMING);
    assert!(orphans.change(begun).unwrap().is_some());
    connection.ack += ANSWER;
    let ack = connection.empty();
    let seen = node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(2));
}

/// What a client sent before it had the response was withheld, so its acknowledgements are ahead of what anybody has got:
/// the agent's socket begins at that.
#[test]
fn acknowledgements_ahead_of_what_was_let_through() {
    for (flag, ahead, resumes) in [
        (SERVICE_STRICT, 108, true),
        (SERVICE_STRICT, 0xffff, true),
        (SERVICE_STRICT, 0x1_0000, false),
        (0, 108, false),
    ] {
        let (node, orphans) = node();
        node.change_flags(|flags| flags | flag);
        let (connection, taken) = orphan(&node);
        orphans.change(taken).unwrap().expect("is as it was");
        let ack = connection.empty();
        let mut later = ack.clone();
        later.seq = ack.seq.wrapping_add(ahead);
        let seen = node.run(&later.frame());
        if resumes {
            let seen = seen.expect(Tx, &[("cs_resume", 1)]);
            assert_eq!(seen.frame[INNER..], ack.packet());
        } else {
            assert_eq!(seen.counted.get("cs_resume"), None);
        }
    }
}

/// A next request says that the response has come.
#[test]
fn a_next_request_is_any_owners() {
    let (node, orphans) = node();
    let (mut connection, taken) = orphan(&node);
    orphans.change(taken).unwrap();
    connection.ack += ANSWER;
    let request = connection.data(get("/"));
    let mut counted = forwarded_and("cs_request", &request);
    counted.push(("cs_request_kept", 1));
    let seen = connection.send(&node, &request).expect(Tx, &counted);
    assert_eq!(seen.packet().ethernet.destination, ds_mac(2));
    assert_eq!(u32::from(connection.entry(&node).state) & TCB_RESUMING, 0);
}

#[test]
fn a_muster_finds_who_is_in_the_middle_of_a_response() {
    let (node, orphans) = node();
    let waits = Connection::open(&node, get("/ds1/"));
    let answered = Connection::answered(&node);
    let ack = answered.empty();
    node.run(&ack.frame());
    let elsewhere = Connection::open(&node, get("/ds2/"));
    let found = |since: Tick| {
        let found = orphans.muster(0, since).unwrap();
        let mut clients: Vec<_> = found.iter().map(|(key, _)| key.ends().0).collect();
        clients.sort_unstable();
        clients
    };
    let mut both = vec![waits.client.address, answered.client.address];
    both.sort_unstable();
    let Tick(now) = tick_ago(std::time::Duration::ZERO);
    assert_eq!(found(Tick(now.wrapping_sub(2))), both);
    // Whose request is kept may be in the middle of its response, however long it says nothing.
    assert_eq!(found(Tick(now + 1000)), both);
    let mut entry = answered.entry(&node);
    entry.request_seq += 1;
    let key = node.tcb_key(&answered.client);
    node.plane().set_tcb(&key, &entry).unwrap();
    // Who waits for an answer is not idle, whenever it asked.
    assert_eq!(found(Tick(now + 1000)), [waits.client.address]);
    orphans.forget(&node.tcb_key(&waits.client)).unwrap();
    orphans.forget(&node.tcb_key(&waits.client)).unwrap();
    assert!(found(Tick(now + 1000)).is_empty());
    assert!(node.tcb(&elsewhere.client).is_some());
}
