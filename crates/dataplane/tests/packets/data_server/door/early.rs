//! Data that comes too early waits in user space, and comes again: then the door judges it as if its client had sent it
//! only then.

use std::{io::Write as _, time::Duration};

use baton_dataplane::{Early, EarlyRing};
use baton_net::client_frame::{PIECE, Stream};
use baton_wire::Message;
use etherparse::{TcpOptionElement, TcpSlice};

use super::owner::{ELSEWHERE, HANDED_ON, HERE, LET_IN, end_of, lets_in, request, serves};
use crate::{data_server::agent::reader::with_agent, lccp, prelude::*};

const WITHHELD: Counted<'_> = &[("ds_door_waits", 1), ("ds_door_withheld", 1)];

const MINUTE_MS: u32 = 60_000;

pub fn waiting(live: &Live) -> EarlyRing {
    live.node.data_server().early().unwrap()
}

#[track_caller]
pub fn one(ring: &EarlyRing) -> Early {
    let mut all = ring.wait(Duration::from_secs(5)).unwrap();
    let early = all.next().unwrap();
    assert_eq!(all.next(), None);
    early
}

/// Sends early data in again, as the daemon does.
pub fn comes_again(live: &Live, early: &Early) {
    let (client, cluster) = early.flow.ends();
    let stream = Stream {
        mac: [0; 6],
        client,
        cluster,
        ack: early.ack,
        window: early.window,
        stamps: early.tsval.map(|tsval| (tsval, 0)),
    };
    let reading = live.node.data_server().reading(LOOPBACK).unwrap();
    for (_, frame) in stream.frames(early.seq, &early.bytes, PIECE, early.ends) {
        reading.send_early(&frame).unwrap();
    }
}

/// Returns the TCP segment of a packet whose IP header has no options.
fn tcp_of(packet: &[u8]) -> TcpSlice<'_> {
    const IP_BYTES: usize = 20;
    TcpSlice::from_slice(&packet[IP_BYTES..]).unwrap()
}

/// Returns a packet's acknowledgement number, its timestamps (its own, and the echo) if it has them, and its data.
fn said(packet: &[u8]) -> (u32, Option<(u32, u32)>, Vec<u8>) {
    let tcp = tcp_of(packet);
    let stamps = tcp
        .options_iterator()
        .flatten()
        .find_map(|option| match option {
            TcpOptionElement::Timestamp(own, echo) => Some((own, echo)),
            _ => None,
        });
    (tcp.acknowledgment_number(), stamps, tcp.payload().to_vec())
}

/// Has a request for data server 1 come while the response before it is under way, and asserts that it waits. Returns
/// what waits.
#[track_caller]
fn withheld(live: &Live, ring: &EarlyRing) -> Early {
    lets_in(live, HERE);
    let whole = request(live, ELSEWHERE);
    let next = whole.clone().seq(whole.seq.wrapping_add(HERE.len() as u32));
    live.forwards(&next, WITHHELD);
    let early = one(ring);
    assert_eq!((early.seq, &early.bytes[..]), (next.seq, ELSEWHERE));
    early
}

/// A request for another data server waits while the response before it is under way. When it comes again, the
/// connection goes with it, and its packet acknowledges what its client has acknowledged since.
#[test]
fn a_request_for_another_waits_until_its_connection_is_quiet() {
    let _host = own_host();
    let (mut live, _agent) = with_agent();
    let ring = waiting(&live);
    let early = withheld(&live, &ring);
    assert!(early.tsval.is_some() && !early.ends);
    comes_again(&live, &early);
    live.expect(WITHHELD);
    let mut early = one(&ring);
    // The client had more room when it sent this packet.
    early.window = 60_000;

    live.answer_another(HERE.len());
    let ack = live.ack();
    comes_again(&live, &early);
    live.expect(HANDED_ON);
    let adopts = live.adopted_by_next(1);
    let (acknowledged, stamps, bytes) = said(&adopts.packet);
    let (newest, before, _) = said(&ack.packet());
    assert_eq!((acknowledged, &bytes[..]), (newest, ELSEWHERE));
    assert_eq!(
        tcp_of(&adopts.packet).window_size(),
        tcp_of(&ack.packet()).window_size()
    );
    // The packet echoes a timestamp of now. With an older one, the client would drop what data server 1 sends.
    let (now, last) = (stamps.unwrap(), before.unwrap());
    assert_eq!(now.0, last.0);
    assert!(now.1.wrapping_sub(last.1) as i32 >= 0, "{now:?} {last:?}");
}

/// If the client has sent waiting data again meanwhile, TCP has acknowledged it. The copy that
/// waited is dropped: TCP would only acknowledge it once more. What is behind that data keeps waiting.
#[test]
fn what_has_come_meanwhile_is_nothing() {
    let _host = own_host();
    let (live, _agent) = with_agent();
    let ring = waiting(&live);
    let next = withheld(&live, &ring);
    let mut early = next.clone();
    early.seq = next.seq.wrapping_sub(HERE.len() as u32);
    early.bytes = HERE.to_vec();
    comes_again(&live, &early);
    live.expect(&[("ds_door_came", 1)]);
    comes_again(&live, &next);
    live.expect(WITHHELD);
    assert_eq!(one(&ring), next);
}

/// The data of a packet waits, but TCP sees its acknowledgement at once. Otherwise the server would retransmit what its
/// client has, and only the answer to that retransmission would let the connection go.
#[test]
fn what_waits_acknowledges_at_once() {
    let _host = own_host();
    let (mut live, _agent) = with_agent();
    let ring = waiting(&live);
    lets_in(&live, HERE);
    live.sent += HERE.len();
    let whole = request(&live, ELSEWHERE);
    live.forwards(&whole, WITHHELD);
    let early = one(&ring);
    live.write();
    live.answers += 1;
    let behind = request(&live, GET).seq(end_of(&whole));
    live.forwards(
        &behind,
        &[
            ("ds_door_batch", 2),
            ("ds_door_later", 1),
            ("ds_door_waits", 1),
            ("ds_forwarded", 1),
        ],
    );
    assert_eq!(one(&ring).bytes, GET);
    comes_again(&live, &early);
    live.expect(HANDED_ON);
    let adopts = live.message_to(ds(1), ds_mac(1));
    assert_eq!(said(&adopts.packet).0, said(&behind.packet()).0);
}

/// A request waits, and its client sends it again, so the connection goes with the second copy. When the copy that has
/// waited comes again, it goes as ADOPT once more, with the numbers with which the connection went: data server 1 may
/// make its socket of them.
#[test]
fn what_has_waited_while_its_connection_went_is_of_then() {
    let _host = own_host();
    let (mut live, _agent) = with_agent();
    let ring = waiting(&live);
    let early = withheld(&live, &ring);
    live.answer_another(HERE.len());
    let again = request(&live, ELSEWHERE);
    live.forwards(&again, HANDED_ON);
    let first = live.message_to(ds(1), ds_mac(1));
    live.message_to(CS, CS_MAC);
    comes_again(&live, &early);
    live.expect(&[("ds_door_again", 1)]);
    let second = live.message_to(ds(1), ds_mac(1));
    let (then, now) = (said(&first.packet), said(&second.packet));
    assert_eq!((now.0, now.2), (then.0, then.2));
    let (then, now) = (then.1.unwrap(), now.1.unwrap());
    assert!(
        now.1.wrapping_sub(then.1) < MINUTE_MS,
        "{then:?} {now:?}: what is echoed is of an older clock"
    );
}

/// If a packet holds two requests, the first is let in and the second waits.
#[test]
fn what_is_behind_a_request_waits() {
    let _host = own_host();
    let (mut live, _agent) = with_agent();
    let ring = waiting(&live);
    let both = request(&live, &[HERE, GET].concat());
    live.forwards(
        &both,
        &[
            ("ds_door_cut", 1),
            ("ds_door_request", 1),
            ("ds_door_waits", 1),
            ("ds_forwarded", 1),
        ],
    );
    let early = one(&ring);
    let begin = both.seq.wrapping_add(HERE.len() as u32);
    assert_eq!((early.seq, &early.bytes[..]), (begin, GET));
    expect_bytes(&live.stream, HERE);
    comes_again(&live, &early);
    live.expect(&[("ds_delivered", 1), ("ds_door_request", 1)]);
    expect_bytes(&live.stream, GET);
    live.answer_another(HERE.len());
}

/// If the first packet of a connection holds two requests, the second waits as well.
#[test]
fn what_is_behind_the_first_request_waits() {
    let _host = own_host();
    let (mut live, _agent) = with_agent();
    let ring = waiting(&live);
    live.client = Client::fresh();
    let both = live.client.get(COOKIE).payload([HERE, ELSEWHERE].concat());
    live.adopts(
        &both,
        &[
            ("ds_adopted", 1),
            ("ds_door_cut", 1),
            ("ds_door_request", 1),
            ("ds_door_waits", 1),
        ],
    );
    assert_eq!(one(&ring).bytes, ELSEWHERE);
}

/// A packet that the previous owner has sent on behind its connection may be older than what has come here since. So it
/// is brought up to date, like one that has waited.
#[test]
fn what_was_sent_behind_its_connection_is_of_now() {
    let _host = own_host();
    let (mut live, _agent) = with_agent();
    let ring = waiting(&live);
    let early = request(&live, HERE);
    serves(&mut live, GET);
    let old = early.seq(live.request().seq).payload(ELSEWHERE);
    let mut message = lccp::forward(&live.client);
    let Message::Forward { attempt, .. } = &mut message else {
        panic!("{message:?}")
    };
    *attempt = 1;
    send(&live.node, &message, &old);
    live.expect(HANDED_ON);
    let adopts = live.message_to(ds(1), ds_mac(1));
    assert_eq!(said(&adopts.packet).0, said(&live.ack().packet()).0);
    assert_eq!(ring.wait(Duration::ZERO).unwrap().count(), 0);
}

/// Without an agent nothing waits, because only the client would send it again.
#[test]
fn without_an_agent_nothing_waits() {
    let _host = own_host();
    let (live, _agent) = with_agent();
    let ring = waiting(&live);
    live.node.change(|settings| settings.reader_port = 0);
    live.forwards(&request(&live, HERE), LET_IN);
    let whole = request(&live, ELSEWHERE);
    let early = whole.clone().seq(end_of(&whole));
    assert_eq!(HERE.len(), ELSEWHERE.len());
    live.forwards(&early, &[("ds_door_withheld", 1)]);
    assert_eq!(ring.wait(Duration::ZERO).unwrap().count(), 0);
    live.forwards(&live.ack(), FORWARDED);
}

/// If a packet that waits has a FIN, what waits says that its client sends no more.
#[test]
fn its_end_waits_with_it() {
    let _host = own_host();
    let (live, _agent) = with_agent();
    let ring = waiting(&live);
    live.forwards(&request(&live, HERE), LET_IN);
    let whole: Segment = request(&live, ELSEWHERE);
    let last = whole.clone().seq(end_of(&whole)).flags("FPA");
    live.forwards(&last, WITHHELD);
    assert!(one(&ring).ends);
}

/// What waits comes again with a new checksum. So a packet that TCP would have dropped does not wait, whatever it would
/// wait for.
#[test]
fn a_broken_packet_does_not_wait() {
    let _host = own_host();
    let (mut live, _agent) = with_agent();
    let ring = waiting(&live);
    let nothing_waits = || assert_eq!(ring.wait(Duration::ZERO).unwrap().count(), 0);

    // This packet lies behind a request that has not come.
    let first = request(&live, HERE);
    let second = request(&live, GET).seq(end_of(&first));
    forward_broken(&live.node, &second);
    live.expect(&[
        ("ds_door_batch", 2),
        ("ds_door_broken", 1),
        ("ds_door_later", 1),
    ]);
    nothing_waits();
    live.forwards(&first, LET_IN);
    expect_bytes(&live.stream, HERE);

    // This request is for another data server, and the response before it is under way.
    let other = second.clone().payload(ELSEWHERE);
    forward_broken(&live.node, &other);
    live.expect(&[("ds_door_broken", 1), ("ds_door_withheld", 1)]);
    nothing_waits();
    live.answer_another(HERE.len());

    // Of two requests in one packet TCP drops both, so the second does not wait.
    let both = request(&live, &[GET, ELSEWHERE].concat());
    forward_broken(&live.node, &both);
    live.expect(&[
        ("ds_door_broken", 1),
        ("ds_door_cut", 1),
        ("ds_door_request", 1),
        ("ds_forwarded", 1),
    ]);
    nothing_waits();

    // The server has got no byte of these packets. What comes with a right checksum waits, even if it is an odd
    // number of bytes.
    let odd = [GET, b"G"].concat();
    live.forwards(
        &both.payload(&odd[..]),
        &[
            ("ds_door_cut", 1),
            ("ds_door_waits", 1),
            ("ds_forwarded", 1),
        ],
    );
    expect_bytes(&live.stream, GET);
    assert_eq!(one(&ring).bytes, b"G");
}

/// A retransmission may begin with the end of the request before the current one, which TCP has. It is cut where the
/// current request begins, and that is judged by itself.
#[test]
fn what_begins_before_a_request_that_tcp_has_dropped_is_cut() {
    const TAIL: usize = 5;
    let _host = own_host();
    let (mut live, _agent) = with_agent();
    let ring = waiting(&live);
    serves(&mut live, HERE);
    let dropped = request(&live, HERE);
    forward_broken(&live.node, &dropped);
    live.expect(LET_IN);
    let with_tail = [&HERE[HERE.len() - TAIL..], HERE].concat();
    let again = dropped.clone().payload(with_tail);
    live.forwards(
        &again.seq(dropped.seq.wrapping_sub(TAIL as u32)),
        &[
            ("ds_door_cut", 1),
            ("ds_door_waits", 1),
            ("ds_forwarded", 1),
        ],
    );
    comes_again(&live, &one(&ring));
    live.expect(&[("ds_delivered", 1)]);
    expect_bytes(&live.stream, HERE);
}

#[test]
fn what_is_behind_a_request_that_tcp_has_dropped_waits_for_it() {
    let _host = own_host();
    let (live, _agent) = with_agent();
    let ring = waiting(&live);
    let first = request(&live, HERE);
    forward_broken(&live.node, &first);
    live.expect(LET_IN);
    live.forwards(
        &first.clone().seq(end_of(&first)),
        &[
            ("ds_door_batch", 2),
            ("ds_door_later", 1),
            ("ds_door_waits", 1),
        ],
    );
    live.forwards(&first, FORWARDED);
    comes_again(&live, &one(&ring));
    live.expect(&[("ds_delivered", 1), ("ds_door_request", 1)]);
    expect_bytes(&live.stream, &HERE.repeat(2));
}

/// If a client was sent all of a response and has not acknowledged it, a request that waits only for that says so: the
/// daemon can then have the client acknowledge it.
#[test]
fn what_waits_only_for_an_acknowledgement_says_so() {
    let _host = own_host();
    let (mut live, _agent) = with_agent();
    let ring = waiting(&live);
    let early = withheld(&live, &ring);
    assert!(!early.unacknowledged, "nobody has answered yet");
    let again = || {
        comes_again(&live, &early);
        live.expect(WITHHELD);
        one(&ring)
    };
    // Without this option the kernel sends the second part only when the first is acknowledged.
    live.stream.set_nodelay(true).unwrap();
    let (begin, rest) = ANSWER.split_at(20);
    for (part, is_all) in [(begin, false), (rest, true)] {
        (&live.stream).write_all(part).unwrap();
        // The kernel may retransmit the part before meanwhile.
        while !live.response().payload().ends_with(part) {}
        assert_eq!(again().unacknowledged, is_all, "{part:?}");
    }
    // No client is probed for what an agent sends in.
    let whole = request(&live, ELSEWHERE);
    let next = whole.clone().seq(early.seq);
    let reading = live.node.data_server().reading(LOOPBACK).unwrap();
    reading.send(&frame_here(&next)).unwrap();
    live.expect(WITHHELD);
    assert!(!one(&ring).unacknowledged);
    // A HEAD request for this data server waits for the acknowledgement as well.
    let head = [b"HEAD", &HERE[3..]].concat();
    live.forwards(&next.payload(head), WITHHELD);
    assert!(one(&ring).unacknowledged);

    live.sent += HERE.len();
    live.answers += 1;
    live.forwards(&live.ack(), FORWARDED);
    comes_again(&live, &early);
    live.expect(HANDED_ON);
}
