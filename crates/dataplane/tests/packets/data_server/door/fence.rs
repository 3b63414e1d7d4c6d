//! A data server that was cut off sends nothing for a connection that another data server may have by then: it asks the
//! client.

use std::{
    io::Write as _,
    net::{TcpListener, TcpStream},
    thread,
    time::Duration,
};

use baton_abi::SENT_SHIFT;
use baton_wire::Message;
use nix::sys::socket::{setsockopt, sockopt::Linger};

use super::owner::is_reset;
use crate::{
    data_server::adopt::window::{backoff_of, in_flight_of},
    prelude::*,
};

const LEASE: Duration = Duration::from_millis(200);
/// A time longer than `LEASE`, and than the time for which a client that was heard counts as heard (`CLIENT_LEASE`).
const LONGER: Duration = Duration::from_millis(700);
const MORE: &[u8] = b"more";
const NONE: Counted<'_> = &[("ds_none", 1)];

/// A connection whose response is under way, at a data server that has a lease and has just heard its connection
/// server.
fn leased() -> Live {
    under_lease(Live::answering())
}

/// Gives the connection's data server a lease, and has it hear its connection server.
fn under_lease(live: Live) -> Live {
    live.stream.set_nodelay(true).unwrap();
    let lease = u32::try_from(LEASE.as_nanos() >> SENT_SHIFT).unwrap();
    live.node.change(|settings| settings.lease = lease);
    hear_connection_server(&live);
    live
}

/// Has the data server hear its connection server, which forwards a packet of another client.
fn hear_connection_server(live: &Live) {
    let stranger = Client::fresh().later(1, 1, 1);
    live.forward(&stranger);
    while live.wire.next().body.is_empty() {}
}

/// Asserts that the client is asked: the segment that leaves is empty, and its sequence number is one that the client
/// has already.
#[track_caller]
fn asks(live: &Live) {
    let said = live.said();
    let segment = said.segment();
    let before = live.ack().ack.wrapping_sub(1);
    assert_eq!(segment.sequence_number(), before);
    assert!(said.payload().is_empty());
    assert!(segment.ack() && !segment.fin() && !segment.rst() && !segment.psh());
    assert!(live.node.moved().contains_key("ds_fenced"));
}

/// Closes the server's socket, by putting another stream in its place.
fn close(live: &mut Live) {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    live.stream = TcpStream::connect(other.local_addr().unwrap()).unwrap();
}

fn write(mut stream: &TcpStream) {
    stream.write_all(MORE).unwrap();
}

/// Asserts that what the server writes leaves.
#[track_caller]
fn writes(live: &Live) {
    write(&live.stream);
    let said = std::iter::repeat_with(|| live.said()).find(|said| !said.payload().is_empty());
    assert_eq!(said.unwrap().payload(), MORE);
}

/// Has a packet of the client come, so that the client is heard.
fn hear_client(live: &Live) {
    live.forward(&live.ack());
    await_counted(&live.node, "ds_forwarded");
}

#[test]
fn within_the_lease_all_is_said() {
    let _host = own_host();
    let live = leased();
    write(&live.stream);
    assert_eq!(live.response().payload(), MORE);
}

#[test]
fn without_a_lease_all_is_said() {
    let _host = own_host();
    let live = leased();
    live.node.change(|settings| settings.lease = 0);
    thread::sleep(LONGER);
    write(&live.stream);
    assert_eq!(live.response().payload(), MORE);
}

/// The client's answer is forwarded here, so the connection is still this data server's.
#[test]
fn cut_off_it_asks_until_the_client_was_heard() {
    let _host = own_host();
    let live = leased();
    thread::sleep(LONGER);
    write(&live.stream);
    asks(&live);
    hear_client(&live);
    writes(&live);
}

/// TCP does not double its timeout for what does not leave. Otherwise the retransmission after the client was heard
/// could come many seconds later.
#[test]
fn what_does_not_leave_is_tried_again_soon() {
    for is_in_flight in [false, true] {
        let _host = own_host();
        send_again();
        let live = leased();
        if !is_in_flight {
            thread::sleep(LONGER);
        }
        write(&live.stream);
        while !live.said().payload().is_empty() {}
        // If TCP counted no segment as in flight, it would give up after some seconds.
        assert_eq!(in_flight_of(&live.stream), 1);
        let before = backoff_of(&live.stream);
        for _ in 0..3 {
            asks(&live);
        }
        assert_eq!(backoff_of(&live.stream), before);
    }
}

/// Nothing has come from the client but the request with which its connection was adopted.
#[test]
fn cut_off_it_asks_before_its_first_response() {
    let _host = own_host();
    let mut live = under_lease(Live::adopted());
    live.answers = 0;
    thread::sleep(LONGER);
    write(&live.stream);
    asks(&live);
    hear_client(&live);
    writes(&live);
}

/// The connection server is heard again, but the client is not heard yet.
#[test]
fn after_a_silence_it_asks_until_the_client_was_heard() {
    let _host = own_host();
    let live = leased();
    thread::sleep(LONGER);
    hear_connection_server(&live);
    write(&live.stream);
    asks(&live);
    hear_client(&live);
    writes(&live);
}

#[test]
fn taken_for_dead_it_asks_until_the_client_was_heard() {
    let _host = own_host();
    for dead in [false, true] {
        let live = leased();
        thread::sleep(LEASE / 10);
        let alive = Message::Alive {
            turned: false,
            dead,
        };
        send(&live.node, &alive, &live.ack());
        await_counted(&live.node, "ds_alive");
        if dead {
            write(&live.stream);
            asks(&live);
            hear_client(&live);
        }
        writes(&live);
    }
}

/// Another data server has had the connection meanwhile, and a connection server that does not know that sends a packet
/// of it here. The socket here ends. Further packets find none, so the connection server hears NONE and asks who has
/// the connection.
#[test]
fn after_a_silence_a_connection_that_went_on_elsewhere_ends() {
    let _host = own_host();
    for was_silent in [false, true] {
        let live = leased();
        live.expect(NONE);
        if was_silent {
            thread::sleep(LONGER);
            hear_connection_server(&live);
            live.expect(NONE);
        }
        let ack = live.ack();
        let more = Segment {
            ack: ack.ack.wrapping_add(1000),
            ..ack
        };
        live.forward(&more);
        if was_silent {
            live.expect(&[("ds_stale_ended", 1)]);
            is_reset(&live.stream);
            live.forwards(&more, NONE);
        } else {
            live.expect(FORWARDED);
        }
    }
}

/// A socket that ends while its host is cut off sends neither FIN nor RST: the client finds out with its next packet.
#[test]
fn cut_off_it_resets_nobody() {
    let _host = own_host();
    for is_reset in [false, true] {
        let mut live = leased();
        if is_reset {
            let linger = nix::libc::linger {
                l_onoff: 1,
                l_linger: 0,
            };
            setsockopt(&live.stream, Linger, &linger).unwrap();
        }
        thread::sleep(LONGER);
        close(&mut live);
        asks(&live);
    }
}
