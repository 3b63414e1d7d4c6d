//! Where only its pool may answer a request: it goes there with its connection, whatever it is like, or no server
//! sees it.

mod in_parts;
mod large;
mod late;
mod once;
mod turn;
mod unread;

use std::time::Duration;

use baton_abi::{
    BEGINS_AGAIN, DATA_SERVER_DEAF, DATA_SERVER_PRESENT, DataServer, LCCP_TCB_TUNNEL,
    SERVICE_HANDOVER, SERVICE_PUNTS, SERVICE_STRICT, TCB_PINNED, TcbKey,
};
use baton_dataplane::{Findings, Lead, RequestLength, Resumed};
use baton_wire::{Keep, Message, TcbPart};

use super::http::{ANSWER, Connection, forwarded, get, routes_by_name};
use crate::{
    cluster::{HTTP, data_server, ds, ds_mac, first_pool_of_one, key},
    lccp::{flow, linux_tcb, sent, short, to_cs},
    node::{Counted, Drop, Node, Pass, Tx},
    segment::{Client, Segment},
};

const MOVED: Counted<'_> = &[("cs_handover", 1), ("cs_request", 1)];
const UNPINNED_AND_MOVED: Counted<'_> =
    &[("cs_handover", 1), ("cs_request", 1), ("cs_unpinned", 1)];
/// Nobody was there to divide the packet.
const CLOSED: Counted<'_> = &[("cs_closed_behind", 1), ("cs_punt_stale", 1)];
const WAITS: Counted<'_> = &[("cs_withheld", 1)];
const WITHHELD: Counted<'_> = &[("cs_withheld", 1)];

fn prepared() -> Node {
    let node = Node::fresh_cs();
    routes_by_name(&node);
    node.change_flags(|flags| flags | SERVICE_STRICT);
    node
}

/// The same message, whatever it tells of the end of its request.
fn without_end(message: Message) -> Message {
    match message {
        Message::Elsewhere { flow, tcb, next } => Message::Elsewhere {
            flow,
            tcb: TcbPart { resume: 0, ..tcb },
            next,
        },
        other => other,
    }
}

/// To the first data server, which has had one request.
fn elsewhere(client: &Client, next: u16) -> Message {
    elsewhere_after(client, next, 1)
}

fn elsewhere_after(client: &Client, next: u16, requests: u8) -> Message {
    let mut tcb = linux_tcb();
    tcb.attempt = requests;
    Message::Elsewhere {
        flow: flow(client),
        tcb,
        next: short(ds(next)),
    }
}

fn begins(client: &Client) -> Message {
    Message::Begins {
        flow: flow(client),
        how: 0,
    }
}

/// What one data server answers about this packet.
fn withheld(node: &Node, from: u16, packet: &Segment, client: &Client, keep: Keep) -> Vec<u8> {
    let message = Message::Withheld {
        flow: flow(client),
        tcb: linux_tcb(),
        keep,
    };
    to_cs(from, &message, node.now(), &key().lccp(), &packet.packet())
}

fn begun(node: &Node, packet: &Segment, client: &Client, keep: Keep) -> Vec<u8> {
    let message = Message::Begun {
        flow: flow(client),
        keep,
        at: packet.seq,
        responses: RESPONSES,
    };
    to_cs(0, &message, node.now(), &key().lccp(), &packet.packet())
}

/// Behind a request for another pool, which this data server may have to let go.
fn behind(client: &Client, next: u16) -> Message {
    Message::Forward {
        flow: flow(client),
        next: Some(short(ds(next))),
        attempt: 0,
        end: 0,
        is_behind: true,
    }
}

/// Whether the owner has what comes again.
fn asked_again(client: &Client) -> Message {
    Message::Begins {
        flow: flow(client),
        how: BEGINS_AGAIN as u8,
    }
}

const AGAIN: Counted<'_> = &[("cs_again", 1)];

/// What the owner has begun to answer when it is asked.
const RESPONSES: u8 = 77;

const HEAD: &str = "Host: 10.77.0.100\r\n";

/// Requests with which no connection could move before.
fn heavy(path: &str) -> [(&'static str, String, bool); 6] {
    [
        (
            "a body",
            format!("POST {path} HTTP/1.1\r\n{HEAD}Content-Length: 5\r\n\r\nhello"),
            true,
        ),
        (
            "a body to come",
            format!("POST {path} HTTP/1.1\r\n{HEAD}Content-Length: 5000\r\n\r\n"),
            true,
        ),
        (
            "no length",
            format!("DELETE {path} HTTP/1.1\r\n{HEAD}\r\n"),
            true,
        ),
        (
            "leave to send",
            format!(
                "PUT {path} HTTP/1.1\r\n{HEAD}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n"
            ),
            true,
        ),
        (
            "chunks",
            format!(
                "POST {path} HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
            ),
            true,
        ),
        (
            "an upgrade",
            format!("GET {path} HTTP/1.1\r\n{HEAD}Upgrade: websocket\r\n\r\n"),
            false,
        ),
    ]
}

#[test]
fn every_request_goes_to_its_pool() {
    let node = prepared();
    for (name, request, is_sure) in heavy("/ds2/") {
        let mut connection = Connection::answered(&node);
        let request = connection.data(request);
        let seen = connection.send(&node, &request);
        let mut counted = MOVED.to_vec();
        if !is_sure {
            counted.push(("cs_pinned", 1));
        }
        seen.check(Tx, &counted)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let message = sent(&node, &seen);
        assert_eq!(message.to, ds(0), "{name}");
        assert_eq!(
            without_end(message.message),
            elsewhere(&connection.client, 1),
            "{name}"
        );
        // Of what goes on behind its packet the next owner is to know where it ends.
        let goes_on = ["a body to come", "leave to send", "an upgrade"].contains(&name);
        let Message::Elsewhere { tcb, .. } = sent(&node, &seen).message else {
            panic!("{seen:?}");
        };
        assert_eq!(tcb.resume != 0, goes_on, "{name}");
        assert_eq!(message.packet, request.packet(), "{name}");
        let pinned = u32::from(connection.entry(&node).state) & TCB_PINNED != 0;
        assert_eq!(pinned, !is_sure, "{name}");

        // It comes again as what it is.
        let seen = node.run(&request.frame());
        let seen = seen.expect(Tx, &[("cs_handover_again", 1)]);
        assert_eq!(
            without_end(sent(&node, &seen).message),
            elsewhere(&connection.client, 1)
        );
        // The rest of it goes the same way.
        let rest = connection.data("more");
        let seen = connection.send(&node, &rest);
        if is_sure && name != "a body to come" && name != "leave to send" {
            // More than it said is another request.
            seen.expect(Drop, WITHHELD);
        } else if !is_sure {
            // Nobody knows where it ends, so the next owner is asked whether this is more of it.
            let message = sent(&node, &seen);
            assert_eq!(
                (message.to, message.message),
                (ds(1), begins(&connection.client))
            );
        } else {
            let seen = seen.expect(Tx, &[("cs_queued", 1)]);
            assert_eq!(sent(&node, &seen).message, behind(&connection.client, 1));
        }
    }
}

/// Another processor may have taken a connection back while this one was handing it over: what nobody has judged then goes
/// nowhere without a question.
#[test]
fn a_handover_that_was_half_taken_back() {
    let node = prepared();
    let mut connection = Connection::answered(&node);
    let request = connection.data(get("/ds2/"));
    connection.send(&node, &request);
    let mut entry = connection.entry(&node);
    (entry.owner, entry.previous) = (entry.previous, entry.owner);
    entry.state |= TCB_PINNED as u8;
    entry.head = 0;
    let key = node.tcb_key(&connection.client);
    node.plane().set_tcb(&key, &entry).unwrap();
    connection.ack += ANSWER;
    let again = Segment {
        ack: connection.ack,
        ..request
    };
    let seen = node.run(&again.frame());
    let message = sent(&node, &seen);
    assert_eq!(
        (message.to, message.message),
        (ds(0), begins(&connection.client))
    );
}

/// The same from the first request on: what comes next is led by its route as well.
#[test]
fn whatever_the_first_request_was() {
    let node = prepared();
    for (name, request, is_sure) in heavy("/ds1/") {
        let rest = match name {
            "a body to come" => 5000,
            "leave to send" => 9,
            _ => 0,
        };
        let mut connection = Connection::open_any(&node, request);
        let strict_pinned = u32::from(connection.entry(&node).state) & TCB_PINNED != 0;
        assert_eq!(strict_pinned, !is_sure, "{name}");
        connection.ack += 25;
        for sent in [rest / 2, rest - rest / 2] {
            if sent > 0 {
                let body = connection.data(vec![b'x'; sent.min(1300)]);
                connection.seq = connection.seq.wrapping_add((sent - sent.min(1300)) as u32);
                let seen = connection.send(
                    &node,
                    &Segment {
                        seq: connection.seq,
                        ..body
                    },
                );
                assert_eq!(seen.verdict, Tx, "{name}");
            }
        }
        connection.ack += ANSWER;
        let request = connection.data(get("/ds2/"));
        let seen = connection.send(&node, &request);
        let expected = if is_sure {
            elsewhere(&connection.client, 1)
        } else {
            begins(&connection.client)
        };
        assert_eq!(without_end(sent(&node, &seen).message), expected, "{name}");
    }
}

/// The owner has delivered nothing. The client's next try is another try, and nothing behind it passes before.
#[test]
fn what_is_withheld_comes_again() {
    let node = prepared();
    node.change_flags(|flags| flags | SERVICE_PUNTS);
    let punts = node.plane().punts().unwrap();
    punts.give_sign(Duration::from_secs(3600)).unwrap();
    for why in [
        Keep::Unsent,
        Keep::Unread,
        Keep::Unfinished,
        Keep::State,
        Keep::Sequence,
        Keep::Other,
    ] {
        for (name, request, _) in heavy("/ds2/") {
            let mut connection = Connection::answered(&node);
            let request = connection.data(request);
            connection.send(&node, &request);
            let key = TcbKey::of(connection.client.address, HTTP);
            let has_begun = |seq| punts.has_begun(&key, seq).unwrap();
            assert!(has_begun(request.seq) && !has_begun(request.seq.wrapping_add(1)));
            let frame = withheld(&node, 0, &request, &connection.client, why);
            node.run(&frame).expect(Drop, WITHHELD);
            assert!(!has_begun(request.seq) && has_begun(request.seq.wrapping_sub(1)));
            assert!(!punts.is_settled(&key, request.seq).unwrap());
            let entry = connection.entry(&node);
            assert_eq!(
                (entry.owner, entry.next_request),
                (0, request.seq),
                "{name}"
            );
            // User space may have a part of it, and nobody else looks at what is behind that.
            let behind = connection.data(get("/ds1/"));
            node.run(&behind.frame())
                .expect(Drop, &[("cs_punted_behind", 1)]);
            let shown: Vec<_> = punts.wait(Duration::from_secs(5)).unwrap().collect();
            assert!(shown.len() == 1 && shown[0].is_behind, "{shown:?}");
            let resumed = punts.follow(&shown[0]).unwrap();
            assert!(matches!(resumed, Resumed::Dropped), "{resumed:?}");
            assert_eq!(node.moved().get("cs_early"), Some(&1));
            node.look();
            let ack = Segment {
                seq: request.seq,
                ..connection.empty()
            };
            let seen = node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
            assert_eq!(seen.packet().ethernet.destination, ds_mac(0));
            let seen = node.run(&request.frame());
            assert_eq!(
                without_end(sent(&node, &seen).message),
                elsewhere(&connection.client, 1),
                "{name}"
            );
        }
    }
}

/// Only its owner can say so, and only if it was asked.
#[test]
fn who_may_withhold() {
    let node = prepared();
    const MISMATCH: Counted<'_> = &[("lccp_mismatch", 1)];
    let mut connection = Connection::answered(&node);
    let request = connection.data(get("/ds2/"));
    let frame = |from| withheld(&node, from, &request, &connection.client, Keep::Unknown);
    node.run(&frame(0)).expect(Drop, MISMATCH);
    let frames = [1, 2, 9].map(frame);
    connection.send(&node, &request);
    let before = connection.entry(&node);
    for frame in frames {
        node.run(&frame).expect(Drop, MISMATCH);
    }
    connection.is_unchanged(&node, &before);
}

/// Where nobody can ever say where a response ends, the connection does: the daemon resets the client.
#[test]
fn what_can_never_move_is_closed() {
    let node = prepared();
    let mut connection = Connection::answered(&node);
    let request = connection.data(get("/ds2/"));
    connection.send(&node, &request);
    let frame = withheld(&node, 0, &request, &connection.client, Keep::Unknown);
    node.run(&frame).expect(Pass, &[("cs_closed_unknown", 1)]);
    assert!(node.tcb(&connection.client).is_none());
}

/// If the request is of its owner's pool, which has another member now, the owner answers it. It is asked about the next one.
#[test]
fn what_cannot_move_within_its_pool_stays() {
    let node = prepared();
    let mut connection = Connection::answered(&node);
    let pool = first_pool_of_one();
    let mut found = node.plane().pool(pool).unwrap();
    found.members = [0b10, 0, 0, 0];
    node.plane().set_pool(pool, &found).unwrap();
    node.set_choices(pool, &[1, 1, 1]);
    let request = connection.data(get("/ds1/"));
    connection.send(&node, &request).expect(Tx, MOVED);
    let frame = withheld(&node, 0, &request, &connection.client, Keep::Unknown);
    node.run(&frame)
        .expect(Drop, &[("cs_kept", 1), ("cs_pinned", 1)]);
    let seen = node.run(&request.frame());
    assert_eq!(seen.counted.get("cs_told"), Some(&1), "{seen:?}");
    assert_eq!(sent(&node, &seen).to, ds(0));
    connection.ack += ANSWER;
    let next = connection.data(get("/ds2/"));
    let seen = connection.send(&node, &next);
    let message = sent(&node, &seen);
    assert_eq!(
        (message.to, message.message),
        (ds(0), begins(&connection.client))
    );
}

/// Who takes no messages cannot say whether a request begins there.
#[test]
fn what_nobody_can_be_asked_about_is_closed() {
    let node = prepared();
    let connection = Connection::answered(&node);
    let mut entry = connection.entry(&node);
    (entry.state, entry.head) = (TCB_PINNED as u8, 0);
    let key = node.tcb_key(&connection.client);
    node.plane().set_tcb(&key, &entry).unwrap();
    let deaf = DataServer {
        flags: (DATA_SERVER_PRESENT | DATA_SERVER_DEAF) as u8,
        ..data_server(0)
    };
    node.plane().set_data_server(0, &deaf).unwrap();
    let ack = connection.empty();
    node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    let more = connection.data(get("/ds2/"));
    let seen = node.run(&more.frame());
    assert_eq!(seen.counted.get("cs_closed_unknown"), Some(&1), "{seen:?}");
    assert!(node.tcb(&connection.client).is_none());
}

#[test]
fn where_it_cannot_go_it_is_closed() {
    let reasons: [(&str, fn(&Node)); 3] = [
        ("an owner that takes no messages", |node| {
            let flags = (DATA_SERVER_PRESENT | DATA_SERVER_DEAF) as u8;
            let deaf = DataServer {
                flags,
                ..data_server(0)
            };
            node.plane().set_data_server(0, &deaf).unwrap();
        }),
        ("a next one that is gone", |node| {
            node.plane()
                .set_data_server(1, &DataServer::default())
                .unwrap();
        }),
        ("no handovers", |node| {
            node.change_flags(|flags| flags & !SERVICE_HANDOVER)
        }),
    ];
    for (name, happen) in reasons {
        let node = prepared();
        let mut connection = Connection::answered(&node);
        happen(&node);
        // Its own requests are answered all the same.
        let own = connection.data(get("/ds1/"));
        let seen = connection.send(&node, &own);
        assert_eq!(seen.packet().ethernet.destination, ds_mac(0), "{name}");
        connection.ack += ANSWER;
        let request = connection.data(get("/ds2/"));
        let counted: Counted<'_> = &[("cs_closed_unmoved", 1), ("cs_request", 1)];
        let seen = connection.send(&node, &request);
        seen.check(Tx, counted)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(seen.packet().tcp().unwrap().flags(), "R", "{name}");
        assert!(node.tcb(&connection.client).is_none(), "{name}");
    }
}

/// Requests that do not wait for the response before: to the same data server they go on, to another they wait.
#[test]
fn pipelined() {
    let node = prepared();
    let mut connection = Connection::open(&node, get("/ds1/"));
    // Should it overtake the first one, its owner would not know the connection.
    let behind = connection.data(get("/ds1/"));
    node.run(&behind.frame()).expect(Drop, WAITS);
    connection.ack += ANSWER;
    for _ in 0..3 {
        let next = connection.data(get("/ds1/"));
        let seen = connection.send(&node, &next);
        assert_eq!(seen.packet().ethernet.destination, ds_mac(0));
        assert_eq!(seen.counted.get("cs_pinned"), None);
    }
    let other = connection.data(get("/ds2/"));
    for _ in 0..2 {
        let counted: Counted<'_> = &[("cs_request", 1), ("cs_withheld", 1)];
        node.run(&other.frame()).expect(Drop, counted);
    }
    // And whatever is behind that.
    let behind = Segment {
        seq: other.seq.wrapping_add(other.payload.len() as u32),
        ..connection.data(get("/ds1/"))
    };
    node.run(&behind.frame()).expect(Drop, &[("cs_early", 1)]);
    connection.ack += ANSWER;
    let other = connection.data(get("/ds2/"));
    let seen = connection.send(&node, &other).expect(Tx, MOVED);
    assert_eq!(
        sent(&node, &seen).message,
        elsewhere_after(&connection.client, 1, 4)
    );
}

/// What begins nowhere that is known of.
#[test]
fn out_of_order() {
    let node = prepared();
    let mut connection = Connection::answered(&node);
    let early = Segment {
        seq: connection.seq + 100,
        ..connection.data(get("/ds1/"))
    };
    node.run(&early.frame()).expect(Drop, &[("cs_early", 1)]);
    // More of a body may come in any order.
    let post = format!("POST /ds1/ HTTP/1.1\r\n{HEAD}Content-Length: 3000\r\n\r\n");
    let post = connection.data(post);
    connection.send(&node, &post);
    for at in [2000, 0, 1000] {
        let body = Segment {
            seq: connection.seq + at,
            ..connection.data(vec![b'x'; 1000])
        };
        let seen = node.run(&body.frame()).expect(Tx, &forwarded(&body));
        assert_eq!(seen.packet().ethernet.destination, ds_mac(0));
    }
    // What reaches beyond its end does not.
    let beyond = Segment {
        seq: connection.seq + 2500,
        ..connection.data(vec![b'x'; 501])
    };
    let seen = node.run(&beyond.frame()).expect(Tx, CLOSED);
    assert_eq!(seen.packet().tcp().unwrap().flags(), "R");
}

/// Nobody here knows where requests begin: the owner does.
#[test]
fn the_owner_is_asked() {
    let node = prepared();
    let upgrade = format!("GET /ds1/ HTTP/1.1\r\n{HEAD}Upgrade: h2c\r\n\r\n");
    let mut connection = Connection::open_any(&node, upgrade);
    connection.ack += ANSWER;
    // What has no data is not asked about.
    let ack = connection.empty();
    node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    let request = connection.data(get("/ds2/"));
    let seen = node.run(&request.frame()).expect(Tx, &[("cs_begins", 1)]);
    let message = sent(&node, &seen);
    assert_eq!(message.to, ds(0));
    assert_eq!(message.message, begins(&connection.client));
    assert_eq!(message.packet, request.packet());

    let answer = begun(&node, &request, &connection.client, Keep::Begins);
    // What was asked about has come back, and goes on.
    let seen = node.run(&answer).expect(Tx, UNPINNED_AND_MOVED);
    let on = sent(&node, &seen);
    assert_eq!(
        on.message,
        elsewhere_after(&connection.client, 1, RESPONSES)
    );
    assert_eq!(on.packet, request.packet());
    // Late, it says nothing any more.
    node.run(&answer).expect(Drop, &[("lccp_mismatch", 1)]);
}

#[test]
fn another_protocol_and_nobody_who_knows() {
    let node = prepared();
    let upgrade = || format!("GET /ds1/ HTTP/1.1\r\n{HEAD}Upgrade: websocket\r\n\r\n");
    let mut connection = Connection::open_any(&node, upgrade());
    connection.ack += ANSWER;
    let frame = connection.data(get("/ds2/"));
    node.run(&frame.frame()).expect(Tx, &[("cs_begins", 1)]);
    let answer = begun(&node, &frame, &connection.client, Keep::Tunnel);
    node.run(&answer).expect(Drop, &[("cs_tunnel", 1)]);
    assert_ne!(
        u32::from(connection.entry(&node).options) & LCCP_TCB_TUNNEL,
        0
    );
    let seen = node.run(&frame.frame()).expect(Tx, &forwarded(&frame));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(0));

    let mut connection = Connection::open_any(&node, upgrade());
    connection.ack += ANSWER;
    let frame = connection.data(get("/ds2/"));
    node.run(&frame.frame()).expect(Tx, &[("cs_begins", 1)]);
    let answer = begun(&node, &frame, &connection.client, Keep::Unknown);
    node.run(&answer).expect(Pass, &[("cs_closed_unknown", 1)]);
    assert!(node.tcb(&connection.client).is_none());
}

/// Where a chunked body ends is known, however it is cut; what looks like a request inside is none.
#[test]
fn chunks_cut_anywhere() {
    let body =
        "7;x=\"y\"\r\nGET /ds\r\n1f\r\nGET /ds3/ HTTP/1.1\r\nHost: x\r\n\r\n\r\n0\r\nX: y\r\n\r\n";
    let head =
        |path: &str| format!("POST {path} HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\n");
    let node = prepared();
    for further in [false, true] {
        for first in 0..body.len() {
            for second in [first, (first + body.len()) / 2, body.len()] {
                let head = format!(
                    "{}{}",
                    head(if further { "/ds2/" } else { "/ds1/" }),
                    &body[..first]
                );
                let mut connection = if further {
                    let mut connection = Connection::answered(&node);
                    let request = connection.data(head);
                    let seen = connection.send(&node, &request);
                    assert_eq!(
                        without_end(sent(&node, &seen).message),
                        elsewhere(&connection.client, 1)
                    );
                    connection
                } else {
                    Connection::open_any(&node, head)
                };
                // As if it had been answered before it was there.
                connection.ack += ANSWER;
                let owner = usize::from(further);
                for (at, piece) in [(first, &body[first..second]), (second, &body[second..])] {
                    if piece.is_empty() {
                        continue;
                    }
                    let early = Segment {
                        seq: connection.seq + 1,
                        ..connection.data("x")
                    };
                    // What is inside of a chunk, or of the end of line behind it, may come in any order.
                    let is_inside = [(9, 18), (22, 55)]
                        .iter()
                        .any(|(begin, end)| at >= *begin && at < *end);
                    if !is_inside {
                        node.run(&early.frame()).expect(Drop, &[("cs_early", 1)]);
                    }
                    let more = connection.data(piece);
                    let seen = node.run(&more.frame()).expect(Tx, &forwarded(&more));
                    assert_eq!(seen.packet().ethernet.destination, ds_mac(owner as u16));
                    // Again it is cut into the same chunks, or it says something else.
                    node.run(&more.frame()).expect(Tx, &forwarded(&more));
                    let other = [("1f\r", "1e\r"), ("\n0\r", "\n1\r")]
                        .map(|(size, other)| piece.replacen(size, other, 1))
                        .into_iter()
                        .find(|other| other != piece);
                    if let Some(other) = other {
                        let more = connection.data(&*other);
                        let again = node.run(&more.frame()).expect(Tx, AGAIN);
                        assert_eq!(sent(&node, &again).message, asked_again(&connection.client));
                    }
                    connection.seq = connection.seq.wrapping_add(piece.len() as u32);
                }
                let request = connection.data(get("/ds3/"));
                let seen = connection.send(&node, &request).expect(Tx, MOVED);
                assert_eq!(sent(&node, &seen).message, elsewhere(&connection.client, 2));
            }
        }
    }
}

#[test]
fn chunks_that_are_none() {
    let head = format!("POST /ds1/ HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\n");
    let node = prepared();
    for more in [
        "x\r\n",
        "5\r\nhello\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        "123456789\r\n",
    ] {
        let mut connection = Connection::open_any(&node, &*head);
        connection.ack += ANSWER;
        let more = connection.data(more);
        let seen = node.run(&more.frame());
        assert_eq!(seen.counted.get("cs_closed_behind"), Some(&1));
        assert_eq!(seen.packet().tcp().unwrap().flags(), "R");
    }
    // Nor where it is not surely the way in which the body ends.
    for lines in [
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: xchunked",
    ] {
        let request = format!("POST /ds1/ HTTP/1.1\r\n{HEAD}{lines}\r\n\r\n");
        let mut connection = Connection::open_any(&node, request);
        connection.ack += ANSWER;
        let seen = node.run(&connection.data(get("/ds1/")).frame());
        assert_eq!(
            sent(&node, &seen).message,
            begins(&connection.client),
            "{lines}"
        );
    }
}

/// A head in several segments goes to user space, all of it, and nothing of it anywhere else before.
#[test]
fn a_head_in_several_segments() {
    let node = prepared();
    node.change_flags(|flags| flags | SERVICE_PUNTS);
    let punts = node.plane().punts().unwrap();
    punts.give_sign(Duration::from_secs(3600)).unwrap();
    let head = format!("POST /ds2/ HTTP/1.1\r\n{HEAD}Content-Length: 10\r\n\r\n");
    for cut in [1, 3, 10, 30, head.len() - 1] {
        let mut connection = Connection::answered(&node);
        let [first, second] = [&head[..cut], &head[cut..]].map(|text| connection.data(text));
        let second = Segment {
            seq: first.seq.wrapping_add(cut as u32),
            ..second
        };
        let punted: Counted<'_> = &[("cs_punted", 1), ("cs_target", 1)];
        node.run(&first.frame()).expect(Drop, punted);
        let behind: Counted<'_> = &[("cs_punted_behind", 1)];
        node.run(&second.frame()).expect(Drop, behind);
        let fin = Segment {
            payload: Vec::new(),
            ..second.clone()
        }
        .flags("FA");
        node.run(&fin.frame()).expect(Drop, behind);
        let read: Vec<_> = punts.wait(Duration::from_secs(5)).unwrap().collect();
        assert_eq!(read.len(), 3);
        let lead = Some(Lead {
            pool: first_pool_of_one() + 1,
            route: 100,
            resumes: false,
        });
        let (head, body) = (head.len() as u32, 10);
        let bytes = head + body;
        let findings = Findings {
            length: Some(RequestLength::Bytes {
                head,
                body: body.into(),
            }),
            ..Findings::default()
        };
        let resumed = punts.resume_by(&read[0], lead, None, findings).unwrap();
        let Resumed::Leaves(_) = resumed else {
            panic!("{resumed:?}");
        };
        let entry = connection.entry(&node);
        assert_eq!(
            (entry.owner, entry.next_request),
            (1, first.seq.wrapping_add(bytes))
        );
        assert_eq!(u32::from(entry.state) & TCB_PINNED, 0);
        let Resumed::Leaves(_) = punts.follow(&read[1]).unwrap() else {
            panic!();
        };
        node.look();
        // Its body, and the next request.
        connection.seq = second.seq.wrapping_add(second.payload.len() as u32);
        connection.ack += 25;
        let body = connection.data("0123456789");
        connection.send(&node, &body).expect(Tx, &forwarded(&body));
        connection.ack += ANSWER;
        let next = connection.data(get("/ds1/"));
        connection.send(&node, &next).expect(Tx, MOVED);
    }
}

/// What is behind a request in its packet goes to user space, which lets both go as packets of their own.
#[test]
fn two_requests_in_one_packet() {
    let node = prepared();
    node.change_flags(|flags| flags | SERVICE_PUNTS);
    let punts = node.plane().punts().unwrap();
    punts.give_sign(Duration::from_secs(3600)).unwrap();
    let chunked = format!(
        "POST /ds1/ HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    );
    for first in [get("/ds1/"), heavy("/ds1/")[0].1.clone(), chunked] {
        let at = first.len();
        let both = format!("{first}{}", get("/ds2/"));
        let mut connection = Connection::answered(&node);
        let packet = connection.data(both);
        node.run(&packet.frame()).expect(Drop, &[("cs_divided", 1)]);
        let read: Vec<_> = punts.wait(Duration::from_secs(5)).unwrap().collect();
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].divide_at.map(|at| usize::from(at.get())), Some(at));
        // The first has come, and again with what is behind it.
        let alone = connection.data(first);
        connection.send(&node, &alone);
        node.run(&packet.frame()).expect(Drop, &[("cs_divided", 1)]);
        let read: Vec<_> = punts.wait(Duration::from_secs(5)).unwrap().collect();
        assert_eq!(read[0].divide_at.map(|at| usize::from(at.get())), Some(at));
    }
}

/// The client is elsewhere than its entry: what it asks for is not for just any server.
#[test]
fn a_jump() {
    let node = prepared();
    let connection = Connection::answered(&node);
    let before = connection.entry(&node);
    let seq = connection.seq.wrapping_add(1 << 20);
    let far = connection.data(get("/ds2/")).seq(seq);
    let asked: Counted<'_> = &[("cs_begins", 1), ("cs_jump", 1)];
    node.run(&far.frame()).expect(Tx, asked);
    connection.is_unchanged(&node, &before);
    let answer = begun(&node, &far, &connection.client, Keep::Begins);
    let told = [
        &[("cs_jumped", 1), ("cs_pinned", 1)][..],
        UNPINNED_AND_MOVED,
    ]
    .concat();
    let seen = node.run(&answer).expect(Tx, &told);
    assert_eq!(
        sent(&node, &seen).message,
        elsewhere_after(&connection.client, 1, RESPONSES)
    );
}

/// A FIN that is behind a request that waits must not pass it by.
#[test]
fn the_end_behind_what_waits() {
    let node = prepared();
    let mut connection = Connection::open(&node, get("/ds1/"));
    let other = connection.data(get("/ds2/"));
    node.run(&other.frame());
    let fin = connection.empty().flags("FA");
    let early = fin
        .clone()
        .seq(other.seq.wrapping_add(other.payload.len() as u32));
    node.run(&early.frame()).expect(Drop, &[("cs_early", 1)]);
    node.run(&other.frame()).expect(Drop, WAITS);
    // At its place it is the owner's.
    connection.ack += ANSWER;
    let fin = connection.empty().flags("FA");
    let seen = node.run(&fin.frame());
    assert_eq!(
        (seen.verdict, seen.packet().ethernet.destination),
        (Tx, ds_mac(0))
    );
}

/// One after which nobody knows where the next begins goes to its owner without a question.
#[test]
fn odd_requests_of_the_owners_pool() {
    let node = prepared();
    for (name, request, is_sure) in heavy("/ds1/") {
        let mut connection = Connection::answered(&node);
        let request = connection.data(request);
        let seen = connection.send(&node, &request);
        // Of one that goes on behind its packet the owner is told where it ends.
        let how = match name {
            "a body to come" | "leave to send" | "an upgrade" => "cs_told",
            _ => "cs_forward",
        };
        assert_eq!(seen.counted.get(how), Some(&1), "{name}");
        assert_eq!(seen.counted.contains_key("cs_pinned"), !is_sure, "{name}");
        assert_eq!(seen.packet().ethernet.destination, ds_mac(0), "{name}");
    }
}

/// What was sent before comes again, and the server may not have taken it the first time.
#[test]
fn the_same_request_again() {
    let node = prepared();
    let post = format!("POST /ds1/ HTTP/1.1\r\n{HEAD}Content-Length: 30\r\n\r\n0123456789");
    let changed = post.replace("/ds1/", "/ds2/");
    let longer = post.replace("30", "29");
    let mut connection = Connection::answered(&node);
    let request = connection.data(post.clone());
    connection.send(&node, &request);
    let head = post.len() - 10;
    let before = connection.entry(&node);
    let part = |from: usize, to: usize| {
        let text = format!("{post}{}", "x".repeat(20));
        Segment {
            seq: request.seq.wrapping_add(from as u32),
            payload: text.as_bytes()[from..to].to_vec(),
            ..request.clone()
        }
    };
    // The same, the same with more of its body, and what is all body.
    for (from, to) in [
        (0, head),
        (0, head + 10),
        (0, head + 30),
        (head, head + 10),
        (head + 5, head + 30),
    ] {
        let again = part(from, to);
        let told: Counted<'_> = &[("cs_told", 1)];
        let goes_on = from == 0 && to < head + 30;
        let all = forwarded(&again);
        let counted = if goes_on { told } else { &all[..] };
        let seen = node.run(&again.frame()).expect(Tx, counted);
        assert_eq!(seen.packet().ethernet.destination, ds_mac(0));
    }
    // Something else, or what does not tell.
    let other = |text: &str| Segment {
        payload: text.into(),
        ..request.clone()
    };
    for again in [
        other(&changed),
        other(&longer),
        part(0, head - 1),
        part(1, head + 10),
        part(1, head + 30),
        part(head - 1, head),
        Segment {
            seq: request.seq.wrapping_sub(1),
            ..request.clone()
        },
    ] {
        let seen = node.run(&again.frame()).expect(Tx, AGAIN);
        assert_eq!(sent(&node, &seen).message, asked_again(&connection.client));
        assert_eq!(sent(&node, &seen).packet, again.packet());
    }
    let after = connection.entry(&node);
    assert_eq!(
        (after.owner, after.next_request, after.requests),
        (before.owner, before.next_request, before.requests)
    );
}

/// The owner has nothing of the current request: it is judged anew. Or it lacks something else: not for long.
#[test]
fn what_the_owner_has_not_got() {
    let node = prepared();
    let mut connection = Connection::answered(&node);
    let request = connection.data(get("/ds1/"));
    connection.send(&node, &request);
    let requests = connection.entry(&node).requests;
    let changed = Segment {
        payload: get("/ds2/").into(),
        ..request.clone()
    };
    node.run(&changed.frame()).expect(Tx, AGAIN);
    let missing = |expected: u32| {
        let message = Message::Begun {
            flow: flow(&connection.client),
            keep: Keep::Missing,
            at: expected,
            responses: RESPONSES,
        };
        let packet = changed.packet();
        to_cs(0, &message, node.now(), &key().lccp(), &packet)
    };
    node.run(&missing(request.seq))
        .expect(Drop, &[("cs_missing", 1)]);
    assert_eq!(connection.entry(&node).requests, requests - 1);
    // Its next owner is told where it ends: it takes the place of a request that may have been told of.
    let seen = node.run(&changed.frame()).expect(Tx, MOVED);
    let told = sent(&node, &seen).message;
    assert!(matches!(told, Message::Elsewhere { tcb, .. } if tcb.resume != 0));
    assert_eq!(without_end(told), elsewhere(&connection.client, 1));

    let mut connection = Connection::answered(&node);
    let request = connection.data(get("/ds1/"));
    connection.send(&node, &request);
    let message = Message::Begun {
        flow: flow(&connection.client),
        keep: Keep::Missing,
        at: request.seq.wrapping_add(1),
        responses: RESPONSES,
    };
    let answer = to_cs(0, &message, node.now(), &key().lccp(), &request.packet());
    for _ in 0..2 {
        node.run(&answer).expect(Drop, &[("cs_missing", 1)]);
    }
    node.run(&answer).expect(Pass, &[("cs_closed_changed", 1)]);
    assert!(node.tcb(&connection.client).is_none());
}

/// A client that ends its connection without a request has asked for nothing: any server may hear of that.
#[test]
fn an_end_without_a_request() {
    let node = prepared();
    node.change_flags(|flags| flags | SERVICE_PUNTS);
    let punts = node.plane().punts().unwrap();
    punts.give_sign(Duration::from_secs(3600)).unwrap();
    let client = Client::of(HTTP);
    let fin = client.ack(node.cookie(&client)).flags("FA");
    let seen = node.run(&fin.frame());
    assert_eq!((seen.verdict, seen.counted.get("cs_adopt")), (Tx, Some(&1)));
    assert_eq!(seen.counted.get("cs_punted"), None);
}
