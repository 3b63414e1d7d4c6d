//! The owner of a connection judges each of its requests: it lets in what is for this data server. With a request for
//! another data server it hands the connection over there, and tells the connection server.

use std::{
    io::{ErrorKind, Read as _},
    net::{Ipv4Addr, TcpStream},
    os::fd::AsRawFd as _,
    thread::sleep,
    time::{Duration, Instant},
};

use baton_abi::{DataServer, RouteKey, SERVICE_PATHS};
use baton_wire::{Message, Refusal, ShortAddress};
use libbpf_rs::MapCore as _;

use crate::{
    data_server::{agent::reader::send_in, handover::leave::but_echo},
    prelude::*,
};

pub const LET_IN: Counted<'_> = &[("ds_door_request", 1), ("ds_forwarded", 1)];
/// The counter of a request that comes again after its connection has gone with it: it is sent there once more.
pub const AGAIN: Counted<'_> = &[("ds_door_again", 1)];
pub const HANDED_ON: Counted<'_> = &[("ds_door_handed_on", 1)];
/// Longer than a door waits for the RST that ends its socket (67 ms).
pub const RST_IS_LOST: Duration = Duration::from_millis(100);
/// Shorter than that.
const RST_IS_AWAITED: Duration = Duration::from_millis(60);
/// A request that only data server 1 may answer.
pub const ELSEWHERE: &[u8] = b"GET /ds2/a HTTP/1.1\r\nHost: 10.77.0.100\r\n\r\n";
/// A request that only this data server may answer.
pub const HERE: &[u8] = b"GET /ds1/a HTTP/1.1\r\nHost: 10.77.0.100\r\n\r\n";

/// Data server 0 and the routes of its service: `/ds1/` is its own, `/ds2/` is data server 1's, and any data server may
/// answer the rest.
pub fn node() -> Node {
    let node = attached();
    let route = |path: &str, pool: u16| {
        (
            RouteKey::of(0, 0, path.as_bytes()).unwrap(),
            u32::from(pool),
        )
    };
    let routes = [
        route("/ds1/", first_pool_of_one()),
        route("/ds2/", first_pool_of_one() + 1),
    ];
    node.routing().set_routes(&routes).unwrap();
    node
}

/// The data server of [`node`], whose doors judge requests by these routes.
pub fn routed() -> Node {
    let node = node();
    owns(&node, SERVICE_PATHS);
    node
}

/// A connection at the data server of [`node`], whose first request is answered.
pub fn owned() -> Live {
    Live::owned(node(), SERVICE_PATHS)
}

pub fn request(live: &Live, text: &[u8]) -> Segment {
    live.request().payload(text)
}

/// Asserts that the connection's socket here has ended: its server sees a reset, which does not leave this host.
pub fn ended(live: &Live) {
    is_reset(&live.stream);
}

pub fn is_reset(mut stream: &TcpStream) {
    let error = stream.read(&mut [0; 16]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

/// Asserts that the next message is MOVED, which tells the connection server that data server 1 has the connection, and
/// that it carries this packet.
#[track_caller]
pub fn told_moved(live: &Live, packet: &Segment) {
    let told = live.message_to(CS, CS_MAC);
    let Message::Moved { flow: of, next, .. } = told.message else {
        panic!("{told:?}");
    };
    assert_eq!((of, next), (flow(&live.client), Some(short(ds(1)))));
    assert_eq!(but_echo(&told.packet), but_echo(&packet.packet()));
}

/// Asserts that the next message is ADOPT to data server 1 with this packet. Returns whether the message says that the
/// client is aware.
#[track_caller]
pub fn told_to_adopt(live: &Live, packet: &Segment) -> bool {
    let adopts = live.message_to(ds(1), ds_mac(1));
    let (
        Message::Adopt { flow, tcb, asker },
        Message::Adopt {
            flow: of,
            tcb: its,
            asker: cs,
        },
    ) = (&adopts.message, &adopt(&live.client))
    else {
        panic!("{adopts:?}");
    };
    assert_eq!((flow, asker), (of, cs));
    assert_eq!(
        (tcb.scales, tcb.sack, tcb.mss),
        (its.scales, its.sack, its.mss)
    );
    assert_eq!(adopts.packet, packet.packet());
    tcb.aware
}

/// Forwards this request, and asserts that the connection goes to data server 1 with it: data server 1 is told to adopt
/// it, and the connection server is told that it has moved.
#[track_caller]
pub fn goes_with(live: &Live, request: &Segment) {
    live.forwards(request, HANDED_ON);
    assert!(!told_to_adopt(live, request));
    told_moved(live, request);
}

/// Asserts that data server 1 is told to adopt the connection with this packet if it has not had it, because the first
/// ADOPT may have been lost. `keeper` keeps the packet's data; if there is none, the client does.
#[track_caller]
pub fn told_again(live: &Live, packet: &Segment, keeper: Option<ShortAddress>) {
    let adopts = live.message_to(ds(1), ds_mac(1));
    let Message::AdoptAgain {
        flow: of,
        tcb,
        asker,
        keeper: its,
    } = adopts.message
    else {
        panic!("{adopts:?}");
    };
    assert_eq!((of, asker), (flow(&live.client), Some(short(CS))));
    assert_eq!((its, tcb.attempt), (keeper, 1));
    assert_eq!(but_echo(&adopts.packet), but_echo(&packet.packet()));
}

/// Forwards the connection's next request, and asserts that it is let in and reaches the server.
#[track_caller]
pub fn lets_in(live: &Live, text: &[u8]) {
    live.forwards(&request(live, text), LET_IN);
    expect_bytes(&live.stream, text);
}

/// Has the next request let in as [`lets_in`] does, and answered.
#[track_caller]
pub fn serves(live: &mut Live, text: &[u8]) {
    lets_in(live, text);
    live.answer_another(text.len());
}

#[test]
fn what_is_here_is_let_in() {
    let _host = own_host();
    let mut live = owned();
    for text in [GET, HERE, GET] {
        serves(&mut live, text);
    }
    live.nothing_sent();
}

#[test]
fn with_a_request_for_another_the_connection_goes() {
    let _host = own_host();
    let mut live = owned();
    serves(&mut live, HERE);
    let request = request(&live, ELSEWHERE);
    goes_with(&live, &request);
    ended(&live);
    live.nothing_sent();
    assert!(nothing_to_accept(&live.listener));
}

/// The connection server may not know yet that a connection has gone. What it sends here goes on to the new owner, and
/// it is told MOVED again.
#[test]
fn what_comes_for_one_that_has_gone_follows_it() {
    let _host = own_host();
    let live = owned();
    let request = request(&live, ELSEWHERE);
    goes_with(&live, &request);
    let ack = live
        .client
        .later(COOKIE, GET.len() + ELSEWHERE.len(), ANSWER.len() as u32 + 7);
    live.forwards(&request, AGAIN);
    told_moved(&live, &request);
    told_again(&live, &request, None);
    for packet in [&ack, &ack.clone().flags("FA"), &ack.clone().flags("R")] {
        live.forwards(packet, &[("ds_door_followed", 1)]);
        follows(&live, packet);
    }
    live.nothing_sent();
}

/// Asserts that the connection server is told where the connection has gone, and that the packet is forwarded there.
#[track_caller]
pub fn follows(live: &Live, packet: &Segment) {
    told_moved(live, packet);
    let follows = live.message_to(ds(1), ds_mac(1));
    let forward = Message::Forward {
        flow: flow(&live.client),
        next: None,
        attempt: 1,
    };
    assert_eq!(follows.message, forward);
    assert_eq!(follows.packet, packet.packet());
}

/// Returns an ADOPT that repeats another one, and names this connection server.
fn adopt_again_for(asker: Ipv4Addr, client: &Client) -> Message {
    let mut message = adopt_again(client, 0, None);
    if let Message::AdoptAgain { asker: named, .. } = &mut message {
        *named = Some(short(asker));
    }
    message
}

/// A request that comes again goes on in an ADOPT that names the connection server that has sent it now: the one by which
/// the connection came before may be dead, and would not hear of a refusal. If it is not known who has sent it, the ADOPT
/// names that one all the same.
#[test]
fn a_request_that_comes_again_names_who_has_sent_it() {
    let _host = own_host();
    let live = owned();
    let way = DataServer {
        ifindex: Wire::interface(),
        ..peer(OTHER_CS_MAC)
    };
    live.node.data_server().set_peer(OTHER_CS, &way).unwrap();
    let request = request(&live, ELSEWHERE);
    goes_with(&live, &request);
    let says = |from, message: &Message| send_from(from, &live.node, message, &request);
    let forwarded_by = |from| says(from, &forward(&live.client));
    let followed = Message::Forward {
        flow: flow(&live.client),
        next: None,
        attempt: 1,
    };
    let other = adopt_again_for(OTHER_CS, &live.client);
    // Who has sent the request, and the connection server that is told where its connection is.
    let cases: [(&str, &dyn Fn(), _); 8] = [
        ("the same", &|| forwarded_by(CS), Some(CS)),
        ("another", &|| forwarded_by(OTHER_CS), Some(OTHER_CS)),
        ("the agent", &|| send_in(&live, &request), None),
        ("another", &|| forwarded_by(OTHER_CS), Some(OTHER_CS)),
        ("its client", &|| send_plain(&request), Some(CS)),
        ("a data server", &|| says(ds(1), &followed), None),
        ("one for another", &|| says(ds(1), &other), Some(OTHER_CS)),
        ("the same", &|| forwarded_by(CS), Some(CS)),
    ];
    for (name, comes, told) in cases {
        comes();
        live.expect(AGAIN);
        if let Some(told) = told {
            let mac = if told == CS { CS_MAC } else { OTHER_CS_MAC };
            let message = live.message_to(told, mac).message;
            let is_moved = matches!(message, Message::Moved { .. });
            assert!(is_moved, "{name}: {message:?}");
        }
        let adopts = live.message_to(ds(1), ds_mac(1)).message;
        let Message::AdoptAgain { asker, .. } = adopts else {
            panic!("{name}: {adopts:?}");
        };
        assert_eq!(asker, Some(short(told.unwrap_or(CS))), "{name}");
    }
    live.nothing_sent();
}

/// A request for another data server is withheld as long as the response before it is not written or not acknowledged.
/// The request comes again, and the connection goes with it once it is quiet.
#[test]
fn a_connection_goes_when_it_is_quiet() {
    let _host = own_host();
    let mut live = owned();
    live.forwards(&request(&live, HERE), LET_IN);
    let before = live.request().payload(ELSEWHERE);
    let early = before
        .clone()
        .seq(before.seq.wrapping_add(HERE.len() as u32));
    live.forwards(&early, &[("ds_door_withheld", 1)]);
    expect_bytes(&live.stream, HERE);
    live.forwards(&early, &[("ds_door_withheld", 1)]);
    live.write();
    live.forwards(&early, &[("ds_door_withheld", 1)]);
    let ack = early.ack.wrapping_add(ANSWER.len() as u32);
    let request = Segment { ack, ..early };
    live.forwards(&request, HANDED_ON);
    assert!(!told_to_adopt(&live, &request));
}

/// A body is never judged as a request, whatever it says and in whatever order its packets come.
#[test]
fn a_body_is_no_request() {
    let _host = own_host();
    let mut live = owned();
    let head = format!(
        "POST /ds1/ HTTP/1.1\r\nHost: 10.77.0.100\r\nContent-Length: {}\r\n\r\n",
        2 * ELSEWHERE.len()
    );
    let head = request(&live, head.as_bytes());
    let first = head.clone().payload(ELSEWHERE).seq(end_of(&head));
    let second = first.clone().seq(end_of(&first));
    live.forwards(&head, LET_IN);
    for packet in [&second, &first, &first] {
        live.forwards(packet, FORWARDED);
    }
    expect_bytes(
        &live.stream,
        &[&head.payload, ELSEWHERE, ELSEWHERE].concat(),
    );
    live.answer_another(head.payload.len() + 2 * ELSEWHERE.len());
    live.forwards(&request(&live, ELSEWHERE), HANDED_ON);
}

pub fn end_of(segment: &Segment) -> u32 {
    segment.seq.wrapping_add(segment.payload.len() as u32)
}

/// If a packet holds two requests, it is cut behind the first. The second comes again, and is judged by itself.
#[test]
fn a_packet_is_cut_where_the_next_request_begins() {
    let _host = own_host();
    // `HERE` has an even length, this request has an odd one.
    let odd: &[u8] = b"GET /ds1/ab HTTP/1.1\r\nHost: 10.77.0.100\r\n\r\n";
    for first in [HERE, odd] {
        let mut live = owned();
        let both = request(&live, &[first, ELSEWHERE].concat());
        live.forwards(
            &both,
            &[
                ("ds_door_request", 1),
                ("ds_forwarded", 1),
                ("ds_door_cut", 1),
            ],
        );
        expect_bytes(&live.stream, first);
        live.answer_another(first.len());
        live.forwards(&request(&live, ELSEWHERE), HANDED_ON);
    }
}

/// A retransmission may hold more than what was sent first.
#[test]
fn what_comes_again_with_more_is_cut() {
    let _host = own_host();
    let mut live = owned();
    let first = request(&live, HERE);
    live.forwards(&first, LET_IN);
    expect_bytes(&live.stream, HERE);
    let more = first.clone().payload([HERE, HERE].concat());
    live.forwards(&more, &[("ds_forwarded", 1), ("ds_door_cut", 1)]);
    live.forwards(&first, FORWARDED);
    live.answer_another(HERE.len());
}

#[test]
fn what_is_behind_a_gap_waits() {
    let _host = own_host();
    let live = owned();
    let first = request(&live, HERE);
    let second = first.clone().seq(end_of(&first));
    live.forwards(&second, &[("ds_door_batch", 2), ("ds_door_later", 1)]);
    live.forwards(&first, LET_IN);
    live.forwards(&second, LET_IN);
    expect_bytes(&live.stream, &[HERE, HERE].concat());
}

/// No server sees what the door cannot read. Without an agent that could read it, the connection ends.
#[test]
fn what_the_door_cannot_read_ends_the_connection() {
    let texts: [&[u8]; 5] = [
        b"GET /ds1/ HTTP/1.1\r\nHost: 10.77.0.100\r\n",
        b"GET /ds1/ HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
        b"GET /ds1/../ds2/ HTTP/1.1\r\nHost: 10.77.0.100\r\n\r\n",
        b"POST /ds1/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"nonsense that is longer than any request\r\n\r\n",
    ];
    let _host = own_host();
    for text in texts {
        let live = owned();
        live.forwards(&request(&live, text), &[("ds_door_unreadable", 1)]);
        ended(&live);
        live.nothing_sent();
    }
}

/// If the connection server has guessed the wrong data server, the ADOPT goes on to the right one at once, before a
/// socket is made here.
#[test]
fn an_adopt_for_another_goes_on() {
    let _host = own_host();
    let mut live = owned();
    let client = Client::fresh();
    let request = client.ack(COOKIE).flags("PA").payload(ELSEWHERE);
    live.adopts(&request, HANDED_ON);
    live.client = client;
    told_moved(&live, &request);
    let adopts = live.message_to(ds(1), ds_mac(1));
    let Message::Adopt {
        flow: of,
        tcb,
        asker,
    } = adopts.message
    else {
        panic!("{adopts:?}");
    };
    assert_eq!(
        (of, tcb.attempt, asker),
        (flow(&client), 1, Some(short(CS)))
    );
    assert!(nothing_to_accept(&live.listener));
    // What comes behind the ADOPT follows it.
    let ack = client.later(COOKIE, ELSEWHERE.len(), 9);
    live.forwards(&ack, &[("ds_door_followed", 1)]);
}

#[test]
fn an_adopt_that_the_door_cannot_read_is_refused_for_all() {
    let _host = own_host();
    let live = owned();
    let client = Client::fresh();
    let request = client
        .ack(COOKIE)
        .flags("PA")
        .payload(&HERE[..HERE.len() - 2]);
    live.adopts(&request, &[("ds_refused", 1), ("ds_door_unreadable", 1)]);
    let refused = live.message_to(CS, CS_MAC);
    let Message::Refused { tcb, refusal, .. } = refused.message else {
        panic!("{refused:?}");
    };
    assert_eq!((tcb.attempt, refusal), (8, Refusal::Unreadable));
    assert!(nothing_to_accept(&live.listener));
}

/// The door also judges an ADOPT that comes again: it cuts off what is behind the first request.
#[test]
fn a_duplicate_of_the_adopt_is_judged_too() {
    let _host = own_host();
    let live = owned();
    live.adopts(&live.client.get(COOKIE), &[("ds_duplicate", 1)]);
    let more = live.client.get(COOKIE).payload([GET, ELSEWHERE].concat());
    send(&live.node, &adopt(&live.client), &more);
    live.expect(&[("ds_duplicate", 1), ("ds_door_cut", 1)]);
}

/// The door has let in a request that was broken on its way, so TCP drops it. A request that comes in its place and is
/// for another pool is not let in, whatever its length. A try that takes longer than the first request can be on its way
/// to TCP shows nothing and is made again.
#[test]
fn another_request_in_place_of_one_that_tcp_has_dropped_is_judged() {
    let _host = own_host();
    loop {
        let live = owned();
        let begins = Instant::now();
        forward_broken(&live.node, &request(&live, HERE));
        live.expect(LET_IN);
        live.forward(&request(&live, ELSEWHERE));
        if begins.elapsed() >= RST_IS_AWAITED {
            continue;
        }
        live.expect(&[("ds_door_changed", 1)]);
        live.forwards(&request(&live, HERE), FORWARDED);
        expect_bytes(&live.stream, HERE);
        return;
    }
}

/// A packet that was broken on its way may look like a request for another data server. Because its checksum is wrong,
/// TCP there drops it, and TCP here drops the RST that was made of it. So the connection is still here when the true
/// request comes.
#[test]
fn a_connection_does_not_go_with_a_broken_request() {
    let _host = own_host();
    for text in [HERE, ELSEWHERE] {
        let live = owned();
        forward_broken(&live.node, &request(&live, ELSEWHERE));
        live.expect(HANDED_ON);
        sleep(RST_IS_LOST);
        live.forward(&request(&live, text));
        if text == HERE {
            live.expect(LET_IN);
            expect_bytes(&live.stream, HERE);
            let next = request(&live, HERE);
            let next = next.clone().seq(end_of(&next));
            live.forwards(&next, LET_IN);
        } else {
            live.expect(HANDED_ON);
            ended(&live);
        }
    }
}

/// As long as TCP may be about to end the socket of a connection that has gone, that socket gets nothing. A try that
/// takes too long shows nothing and is made again.
#[test]
fn a_socket_that_its_connection_has_left_gets_nothing() {
    let _host = own_host();
    loop {
        let live = owned();
        let begins = Instant::now();
        forward_broken(&live.node, &request(&live, ELSEWHERE));
        live.expect(HANDED_ON);
        live.forward(&request(&live, HERE));
        if begins.elapsed() < RST_IS_AWAITED {
            live.expect(&[("ds_door_batch", 2), ("ds_door_later", 1)]);
            break;
        }
    }
}

/// The requests that wait for their responses are counted modulo 256. If there were more than 127 of them, nobody could
/// say whether the connection is quiet.
#[test]
fn no_more_requests_wait_than_can_be_counted() {
    let _host = own_host();
    let mut live = owned();
    for _ in 0..127 {
        live.forwards(&request(&live, HERE), LET_IN);
        live.sent += HERE.len();
    }
    let too_many: Counted<'_> = &[("ds_door_withheld", 1)];
    live.forwards(&request(&live, HERE), too_many);
    live.forwards(&request(&live, ELSEWHERE), too_many);
    // The tap on the wire has no room for all that was sent meanwhile.
    live.wire = Wire::tapped();
    live.answer_another(0);
    live.forwards(&request(&live, HERE), LET_IN);
}

/// A connection that began before its service had doors has none: it ends with its next data.
#[test]
fn a_connection_without_a_door_ends() {
    let _host = own_host();
    let live = owned();
    let doors = map_named(live.node.plane(), "doors");
    let storage = live.stream.as_raw_fd().to_ne_bytes();
    doors.delete(&storage).unwrap();
    live.forwards(&request(&live, HERE), &[("ds_door_unknown", 1)]);
    ended(&live);
}
